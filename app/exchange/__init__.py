"""Conversations in files: export to JSON, Markdown, HTML and text, and import from JSON exports.

Everything in an imported file is hostile: sizes, depths, counts and types are checked before use,
and each refusal is one sentence (words/exchange.py). Pictures are decoded by the extraction
process, also those that Rejoinder has exported, and stored before the conversations that have them.

The JSON that `own_json` writes is an array of conversation objects, and of objects of pictures
before the first conversation that has the picture. A picture that several conversations have is
written once:

    format              "rejoinder-picture"
    version             1
    original            string; the attachments with this picture name it
    size                "small", "medium" or "full": the size for the model in the next conversation
    data                data URL of the file without metadata: at most 50 MB of PNG, JPEG or WebP

An object of a conversation has all branches:

    format              "rejoinder-conversation"
    version             1
    conversation_id     string; an import of a stored conversation adds only its missing messages
    title, title_is_manual, system_prompt, read_system_prompt (string or null), keep_ready, draft
    created_at, updated_at      Unix seconds
    setup               object: the generation options of the chat; null means the model's default
    shown               object: parent id ("" for the first message) to the id of the version shown
                        below it, if that is not the newest one
    draft_attachments   array, the files of the draft: as `attachments` below
    without_documents   true if the chat begins without the documents of its folder
    pinned, archived    true or false: the place of the conversation in the list
    folder              null, or object: folder_id, name, color, created_at, system_prompt, preset
                        (its name), and documents (array: as `attachments` below). An import adds a
                        missing folder, and restores a deleted one
    messages            array, each parent before its children, versions of a message oldest first:
        node_id, parent     strings; parent is null for a first message
        role                "user" or "assistant"; the roles alternate
        content, reasoning  strings in Markdown
        created_at          Unix seconds
        status              "complete", "stopped" or "failed"
        reply               null, or object: token_ids (array), answer_start, tokenizer_hash
        generation          null, or object: model, sampling options and usage of the reply
        problem             null, or object: title, cause, advice, details
        attachments         array, the files of a user message in order; of each file the name, kind
                            (such as "pdf"), text, num_pages (null if it has none), and part (label
                            of the attached part; "" for the whole file). A picture has no text, and
                            the object `picture`: original, extension, width, height, size, and view
                            (digest, width, height). An import uses original and size only.
                            from_folder is true for a document of the chat's folder
        chat_title          string; for a first message the title that the model wrote, else ""

Missing fields have their default. Unknown fields are ignored. Deleted messages are not exported.
"""
