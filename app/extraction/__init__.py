"""The text of files (plain text of every kind, HTML, PDF, Word and EPUB documents), and pictures.

Every file is read by a child process (program.py), which is ended at a limit of time or memory. So
a damaged or hostile file can do no harm, and the window stays responsive. extractor.py is the side
of the app. The process writes nothing and opens no connections.

Word and EPUB documents are ZIP files with XML, read with the standard library: python-docx would
add lxml, 5 MB of C code, for a tenth of this code. XML with a document type is refused, so no
entity is ever expanded.
"""
