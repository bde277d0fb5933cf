"""Running the book: text notebooks go through papermill, and what comes out through Jupyter Book."""
