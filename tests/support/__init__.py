"""What tests share: the simulated loop, fakes of the seams, and checks for what is left behind."""
