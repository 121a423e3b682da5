"""Where each batch is, and the edges that hold them."""
