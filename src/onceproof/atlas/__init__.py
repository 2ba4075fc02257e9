"""Verdicts that leave the machine that reached them: a file of cells, and the one that is shipped."""
