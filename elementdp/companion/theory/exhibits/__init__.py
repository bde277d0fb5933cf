"""What the theory chapters show: figures and tables with captions, and the numbers their prose cites."""
