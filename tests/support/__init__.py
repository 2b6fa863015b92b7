"""What the scenarios and the demo share. Only the standard library."""
