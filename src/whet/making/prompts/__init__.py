"""What the optimizer is asked at each stage of making a world."""
