"""The results as a page: matrix, cells, and the timeline of a trial."""
