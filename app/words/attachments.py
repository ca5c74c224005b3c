"""Texts about files that are attached to a message."""

from __future__ import annotations

from typing import Final

UNNAMED: Final = "Untitled"
ATTACH: Final = "Attach Files…"
ATTACH_TO_EDIT: Final = "Attach Files to This Message"
ATTACH_TITLE: Final = "Attach Files"
ATTACHED: Final = "Attached files"
COUNTING: Final = "Counting…"
OPENING: Final = "Opening…"
REMOVE: Final = "Remove"
OPEN: Final = "Open"
COPY_PICTURE: Final = "Copy Picture"
SAVE_PICTURE: Final = "Save Picture As…"
SEND_WITHOUT_PICTURE: Final = "Send Again Without Picture"
PASTED: Final = "Pasted picture"
SIZE: Final = "Size for the model"
# Keys: the values of PictureSize.
SIZES: Final = {"small": "Small", "medium": "Medium", "full": "Full"}
ACTUAL_SIZE: Final = "Actual Size"
FIT: Final = "Fit to Window"
COPY: Final = "Copy"
SAVE_AS: Final = "Save As…"
NOT_RESIZED: Final = "The size of the picture was not changed."
ORIGINAL_MISSING: Final = "The stored picture can’t be found."
ORIGINAL_UNREADABLE: Final = "The stored picture can’t be read."
NOT_COPIED: Final = "The picture can’t be found, so it was not copied."
MOVE_LEFT: Final = "Move Left"
MOVE_RIGHT: Final = "Move Right"
DROP_HERE: Final = "Drop to attach"
FIRST_PART: Final = "Use First Part"
CHOOSE_PAGES: Final = "Choose Pages…"
WAIT: Final = "Wait until the files are opened, then send."
MESSAGE_LINK: Final = "Links can’t be attached. Save the page as a file, then attach it."
NO_ATTACHMENT: Final = "The file could not be attached."
NO_ATTACHMENT_ADVICE: Final = "Attach another file, or paste its text."
PICTURE_MISSING: Final = "Picture not found"
# The text and the label of an attachment in the place of a picture that cannot be read.
LOST_PICTURE: Final = "(This picture can’t be read.)"
LOST_PART: Final = "can’t be read"
BAD_PAGES: Final = "The file has none of these pages."
NOT_ALL_ATTACHED: Final = "Not everything was attached."
SOURCE_GONE: Final = "has been moved or deleted. Its text stays attached."

# The window with the text of a file.
PREVIOUS_PASSAGE: Final = "Previous"
NEXT_PASSAGE: Final = "Next"
QUOTE_TIP: Final = (
    "The same words stand in the file. Capitals, punctuation and line breaks may differ."
)


# Sentences that begin with the name of the file. The keys are the values of extraction.Refused.
_SENTENCES: Final = {
    "missing": "can’t be found.",
    "unreadable": "can’t be read. Check its permissions.",
    "folder": "is a folder. Attach the files in it.",
    "link": "is a link. Attach the file that it points to.",
    "no_file": "is not a file.",
    "empty": "contains no text.",
    "binary": "contains no text that can be read.",
    "encoding": "has an unknown text encoding. Save it as UTF-8, then attach it.",
    "image": "is a picture in a format that can’t be read. Save it as PNG or JPEG.",
    "heif": "is a HEIC or AVIF picture that can’t be read here. Save it as PNG or JPEG.",
    "picture_too_large": (
        "is too large. A picture can have up to 50 MB, 100 million pixels and 30,000 pixels a side."
    ),
    "picture_too_complex": (
        "takes too much time or memory to open. Save it as a smaller PNG or JPEG."
    ),
    "picture_pages": "has several pages. Save it as PDF with text, or each page as PNG.",
    "sound": "is a recording. Attach its transcript.",
    "archive": "is an archive. Unpack it, then attach the files in it.",
    "office": "can’t be read in this format. Save it as PDF, CSV or plain text.",
    "old_office": "is an old or protected Office file. Save it as .docx or PDF without a password.",
    "rich_text": "is rich text. Save it as .docx or as plain text.",
    "damaged": "is damaged. Open it in its own app and save it again.",
    "encrypted": "is password-protected. Save a copy without the password.",
    "scanned": "contains pictures of pages, not text. Run text recognition on it first.",
    "too_large": "is too large. Attach a part of it.",
    "too_complex": "takes too much time or memory to read. Save it as plain text.",
    "stopped": "was not attached.",
}


def refused(name: str, why: str) -> str:
    return f"“{name}” {_SENTENCES[why]}"


def more_reasons(number: int) -> str:
    """Return the note below sentences about files, of which some are not shown."""
    return "And 1 more file." if number == 1 else f"And {number:,} more files."


def too_many(number: int, limit: int) -> str:
    return f"{number:,} files are too many. A message can have up to {limit}."


def already(name: str) -> str:
    return f"“{name}” is already attached."


def cut_at(name: str, num_chars: int) -> str:
    return f"“{name}” is very long: its first {num_chars:,} characters were attached."


def attached(name: str, part: str) -> str:
    return f"[{name}, {part}]" if part else f"[{name}]"


def pages_label(name: str, number: int) -> str:
    """Return the label of the field for the pages of a file with this name and number of pages."""
    example = f"1-{number // 2}, {number}" if number > 3 else "1"
    return f"Pages of “{name}” ({num_pages(number)}), for example {example}:"


def pages_part(ranges: str) -> str:
    return f"Page {ranges}" if ranges.isdigit() else f"Pages {ranges}"


def lacks_pages(ranges: str) -> str:
    """Return a sentence about pages that the user chose and the attached text does not have."""
    noun = "page" if ranges.isdigit() else "pages"
    return f"The attached text does not contain {noun} {ranges}."


def picture_name(name: str) -> str:
    """Return the name of a picture for screen readers."""
    return f"Picture {name}"


def sees_none(model_name: str) -> str:
    """Return the sentence that a model can't see the pictures of a message."""
    return f"{model_name} can’t see pictures."


def sees_none_of_chat(model_name: str) -> str:
    """Return the sentence that a model can't see the pictures of earlier messages."""
    return f"{model_name} can’t see pictures, and this chat has some."


def picture_size(width: int, height: int) -> str:
    return f"{width:,} \N{MULTIPLICATION SIGN} {height:,}"


def first_share(percent: float) -> str:
    """Return the label of the first part of a file. A share below 1% has a decimal."""
    number = f"{percent:.0f}" if percent >= 1 else f"{max(0.1, percent):.1f}"
    return f"First {number}%"


def shared_percent(part: str) -> float:
    """Return the percentage in a label of first_share(), and 100 for any other label."""
    number = part[len("First ") : -1]
    is_number = number.replace(".", "", 1).isdecimal()
    return float(number) if is_number and part == first_share(float(number[:3])) else 100


def num_pages(number: int) -> str:
    return "1 page" if number == 1 else f"{number:,} pages"


def reading(num_files: int, *, name: str, percent: str, time_left: str) -> str:
    """Return a note on the file of this name, or on several files."""
    subject = name if num_files == 1 else f"{num_files} files"
    left = f" · about {time_left} left" if time_left else ""
    return f"Reading {subject} · {percent}{left}"


def about(number: str) -> str:
    return f"about {number}"


def read(percent: int) -> str:
    """Return the share of a file that the model has read, for its chip."""
    return "read" if percent >= 100 else f"{percent}% read"


def too_long(name: str, *, model_name: str, num_tokens: str, limit: str) -> str:
    return f"“{name}” is too long for {model_name}: {num_tokens}. {_leaves_room(limit)}"


def all_too_long(*, model_name: str, num_tokens: str, limit: str) -> str:
    return f"The files alone are too long for {model_name}: {num_tokens}. {_leaves_room(limit)}"


def _leaves_room(limit: str) -> str:
    return f"Up to {limit} leave room for an answer."


def chat_too_long(num_files: int, *, model_name: str, num_tokens: str, over: str) -> str:
    files = "this file" if num_files == 1 else "these files"
    excess = f"{num_tokens}, {over} too many to leave room for an answer"
    return f"With {files} the chat is too long for {model_name}: {excess}."


def lost_picture(name: str) -> str:
    return f"“{name}” can’t be read. Remove it, or attach it again."


def source_gone(name: str) -> str:
    return f"“{name}” {SOURCE_GONE}"


def quotes(name: str, num_passages: int) -> str:
    """Return the row below an answer that has passages of a file, word for word."""
    return f"Quotes {name}" if num_passages == 1 else f"Quotes {name} ({num_passages:,})"


def quotes_spoken(name: str, num_passages: int) -> str:
    """Return the row below an answer for screen readers."""
    passages = "1 passage" if num_passages == 1 else f"{num_passages:,} passages"
    return f"Quotes {name}: {passages} with the same words. Show in the file"


def passage(number: int, count: int) -> str:
    """Return the number of the marked passage."""
    return f"{number:,} of {count:,}"


def text_title(name: str, part: str) -> str:
    """Return the title of the window with the text of a file."""
    return f"{name} ({part})" if part else name


def text_of(name: str) -> str:
    """Return the name of the text of a file for screen readers."""
    return f"Text of {name}"
