"""The paper's experiments at the paper's size (Section 4), and the tables of recorded runs."""
