"""Printed pages and PDF files: the rows of the transcript, laid out again for paper."""
