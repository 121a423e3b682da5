"""Moving framed messages between workers."""
