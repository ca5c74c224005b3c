"""The tables of the database, as a list of migrations.

PRAGMA user_version in the database is the number of migrations that were applied to it. A released
migration is never edited: a change of the tables is a new migration at the end. A migration is a
tuple of single SQL statements.
"""

from __future__ import annotations

Migration = tuple[str, ...]
Value = str | bytes | int | float | None  # a value of a column

# message_number is an explicit INTEGER PRIMARY KEY, because VACUUM may renumber an implicit rowid.
# The number gives the order of creation within a conversation. Small columns come first: long text
# and token ids are stored on overflow pages, which a query of small columns never reads.
_M001: Migration = (
    """
    CREATE TABLE conversations (
        conversation_id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        title_is_manual INTEGER NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        deleted_at REAL,
        setup TEXT NOT NULL,
        system_prompt TEXT NOT NULL,
        read_system_prompt TEXT,
        draft TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE messages (
        message_number INTEGER PRIMARY KEY,
        node_id TEXT NOT NULL UNIQUE,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        parent TEXT,
        role TEXT NOT NULL,
        status TEXT NOT NULL,
        created_at REAL NOT NULL,
        generation TEXT,
        finish_reason TEXT,
        prompt_tokens INTEGER,
        restored INTEGER,
        replayed INTEGER,
        read INTEGER,
        reasons TEXT,
        output_tokens INTEGER,
        queue_ms REAL,
        render_ms REAL,
        restore_ms REAL,
        prefill_ms REAL,
        ttft_ms REAL,
        total_ms REAL,
        decode_tok_s REAL,
        cache_bytes INTEGER,
        problem TEXT,
        answer_start INTEGER,
        tokenizer_hash TEXT,
        content TEXT NOT NULL,
        reasoning TEXT NOT NULL,
        token_ids BLOB
    ) STRICT
    """,
    "CREATE INDEX messages_by_conversation ON messages (conversation_id)",
    # A partial index of the streaming replies only: at the start, the app finds interrupted replies
    # without reading all messages.
    "CREATE INDEX messages_streaming ON messages (status) WHERE status = 'streaming'",
    """
    CREATE TABLE shown_versions (
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        parent TEXT NOT NULL,  -- '' for the first message
        node_id TEXT NOT NULL,
        PRIMARY KEY (conversation_id, parent)
    ) STRICT, WITHOUT ROWID
    """,
)

# Move the seed from the generation JSON to a column. Without the seed, many replies have the same
# JSON, which message_rows.py then parses only once.
_M002: Migration = (
    "ALTER TABLE conversations ADD COLUMN keep_ready INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN seed INTEGER",
    """
    UPDATE messages
    SET seed = json_extract(generation, '$.sampling.seed'),
        generation = json_set(generation, '$.sampling.seed', 0)
    WHERE CASE WHEN json_valid(generation) THEN json_type(generation, '$.sampling.seed') = 'integer' END
    """,
)

_M003: Migration = (
    "ALTER TABLE messages ADD COLUMN deleted_at REAL",
    "CREATE INDEX messages_deleted ON messages (deleted_at) WHERE deleted_at IS NOT NULL",
    """
    CREATE TABLE presets (
        name TEXT PRIMARY KEY,
        system_prompt TEXT NOT NULL,
        setup TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE model_presets (
        model_path TEXT PRIMARY KEY,
        name TEXT NOT NULL REFERENCES presets ON DELETE CASCADE
    ) STRICT
    """,
)

# The figures of speculative decoding. 0 in replies of earlier versions of the app.
_M004: Migration = (
    "ALTER TABLE messages ADD COLUMN passes INTEGER DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN drafted_tokens INTEGER DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN accepted_tokens INTEGER DEFAULT 0",
)

# The index of the search (search.py). A message is indexed if it does not stream and its number is
# not in the range that search_progress holds: these are messages of earlier versions, which are
# indexed in slices. The connection provides the SQL function search_text (database.py). Without the
# index of all prefixes of 2 and 3 characters, the first letters of a search would take 0.2 s in a
# million messages; with it, the database grows by 58 % instead of 40 %.
_PENDING = "EXISTS (SELECT 1 FROM search_progress WHERE {0}.message_number BETWEEN first AND last)"
_ADD = (
    "INSERT INTO message_search (rowid, text) SELECT new.message_number, search_text(new.content)"
)
_REMOVE = (
    "INSERT INTO message_search (message_search, rowid, text)"
    " SELECT 'delete', old.message_number, search_text(old.content)"
)
_M005: Migration = (
    """
    CREATE VIRTUAL TABLE message_search USING fts5 (
        text, content = '', columnsize = 0, prefix = '2 3',
        tokenize = 'unicode61 remove_diacritics 2'
    )
    """,
    "CREATE TABLE search_progress (first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT",
    """
    INSERT INTO search_progress
    SELECT 1, coalesce(max(message_number), 0) FROM messages
    """,
    f"""
    CREATE TRIGGER search_insert AFTER INSERT ON messages
    WHEN new.status <> 'streaming' AND NOT {_PENDING.format("new")}
    BEGIN {_ADD}; END
    """,
    f"""
    CREATE TRIGGER search_delete AFTER DELETE ON messages
    WHEN old.status <> 'streaming' AND NOT {_PENDING.format("old")}
    BEGIN {_REMOVE}; END
    """,
    f"""
    CREATE TRIGGER search_update AFTER UPDATE OF content, status ON messages
    WHEN (old.content <> new.content OR old.status <> new.status) AND NOT {_PENDING.format("new")}
    BEGIN
        {_REMOVE} WHERE old.status <> 'streaming';
        {_ADD} WHERE new.status <> 'streaming';
    END
    """,
)

# The figures of state that was read from disk. 0 in replies of earlier versions of the app.
_M006: Migration = (
    "ALTER TABLE messages ADD COLUMN restored_disk INTEGER DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN disk_ms REAL DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN written_bytes INTEGER DEFAULT 0",
)

# The place of a conversation in the list (conversation/placement.py). A folder that is gone leaves
# its id in folder_id, so that it has its conversations again if it is restored. Such a conversation
# is in no folder.
_M007: Migration = (
    "ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE conversations ADD COLUMN archived INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE conversations ADD COLUMN folder_id TEXT",
    """
    CREATE TABLE folders (
        folder_id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        color TEXT NOT NULL,
        created_at REAL NOT NULL,
        deleted_at REAL,
        system_prompt TEXT NOT NULL,
        preset TEXT NOT NULL  -- '' for none
    ) STRICT
    """,
)

# The text of attached files. A text is stored once, however many messages have it, and removed with
# the last message or draft that has it. The attachments of a draft have the node_id ''. The column
# `source` is the path that the file had.
_M008: Migration = (
    """
    CREATE TABLE attachment_texts (
        text_number INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        text TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE attachments (
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        node_id TEXT NOT NULL,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        num_pages INTEGER,
        part TEXT NOT NULL,
        source TEXT NOT NULL,
        digest TEXT NOT NULL,
        PRIMARY KEY (conversation_id, node_id, place)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX attachments_by_digest ON attachments (digest)",
    """
    CREATE VIRTUAL TABLE attachment_search USING fts5 (
        text, content = '', columnsize = 0, prefix = '2 3',
        tokenize = 'unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TRIGGER attachments_of_message AFTER DELETE ON messages
    BEGIN
        DELETE FROM attachments
        WHERE conversation_id = old.conversation_id AND node_id = old.node_id;
    END
    """,
    """
    CREATE TRIGGER attachment_text_unused AFTER DELETE ON attachments
    WHEN NOT EXISTS (SELECT 1 FROM attachments WHERE digest = old.digest)
    BEGIN DELETE FROM attachment_texts WHERE digest = old.digest; END
    """,
    """
    CREATE TRIGGER attachment_text_insert AFTER INSERT ON attachment_texts
    BEGIN
        INSERT INTO attachment_search (rowid, text)
        SELECT new.text_number, search_text(new.text);
    END
    """,
    """
    CREATE TRIGGER attachment_text_delete AFTER DELETE ON attachment_texts
    BEGIN
        INSERT INTO attachment_search (attachment_search, rowid, text)
        SELECT 'delete', old.text_number, search_text(old.text);
    END
    """,
)

# The checksums of the texts of messages (checks.py). They are in a table of their own, so a damaged
# page does not hold both, and a missing message is found. The connection provides text_checksum.
_CHECK = (
    "INSERT INTO message_checks"
    " VALUES (new.message_number, text_checksum(new.content, new.reasoning))"
    " ON CONFLICT (message_number) DO UPDATE SET checksum = excluded.checksum"
)
_M009: Migration = (
    """
    CREATE TABLE message_checks (
        message_number INTEGER PRIMARY KEY,
        checksum INTEGER NOT NULL
    ) STRICT
    """,
    """
    INSERT INTO message_checks
    SELECT message_number, text_checksum(content, reasoning) FROM messages
    """,
    f"CREATE TRIGGER check_insert AFTER INSERT ON messages BEGIN {_CHECK}; END",
    f"""
    CREATE TRIGGER check_update AFTER UPDATE OF content, reasoning ON messages
    BEGIN {_CHECK}; END
    """,
    """
    CREATE TRIGGER check_delete AFTER DELETE ON messages
    BEGIN DELETE FROM message_checks WHERE message_number = old.message_number; END
    """,
)

# 1: the last answer of the conversation ended out of sight (unseen.py).
_M010: Migration = ("ALTER TABLE conversations ADD COLUMN unseen INTEGER NOT NULL DEFAULT 0",)

# 1: the draft has a message that was sent, and the app ended before a model read it.
_M011: Migration = (
    "ALTER TABLE conversations ADD COLUMN draft_was_sent INTEGER NOT NULL DEFAULT 0",
)

# The title that the model wrote for a chat, at the version of the first message that it is for.
_M012: Migration = ("ALTER TABLE messages ADD COLUMN chat_title TEXT",)

# The part of the wait in which no model was ready. 0 in replies of earlier versions of the app.
_M013: Migration = ("ALTER TABLE messages ADD COLUMN load_ms REAL DEFAULT 0",)

_M014: Migration = ("ALTER TABLE messages ADD COLUMN restored_ahead INTEGER DEFAULT 0",)

# The reading that the restored tokens spared. 0 in replies of earlier versions of the app.
_M015: Migration = ("ALTER TABLE messages ADD COLUMN saved_ms REAL DEFAULT 0",)

# The texts in the editors of messages, as JSON (conversation_rows.py).
_M016: Migration = ("ALTER TABLE conversations ADD COLUMN draft_edits TEXT NOT NULL DEFAULT '{}'",)

# An attached picture as JSON (AttachedPicture). Its text is empty, and has no row in
# attachment_texts.
_M017: Migration = ("ALTER TABLE attachments ADD COLUMN picture TEXT",)

# The documents of folders (conversation/folder.py). Their texts are in attachment_texts, and are
# removed when neither an attachment nor a document has them. from_folder is 1 in the attachments of
# a message that were documents of its folder.
_UNUSED_TEXT = """
    CREATE TRIGGER {0} AFTER DELETE ON {1}
    WHEN NOT EXISTS (SELECT 1 FROM attachments WHERE digest = old.digest)
        AND NOT EXISTS (SELECT 1 FROM folder_documents WHERE digest = old.digest)
    BEGIN DELETE FROM attachment_texts WHERE digest = old.digest; END
"""
_M018: Migration = (
    "ALTER TABLE attachments ADD COLUMN from_folder INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE conversations ADD COLUMN without_documents INTEGER NOT NULL DEFAULT 0",
    """
    CREATE TABLE folder_documents (
        folder_id TEXT NOT NULL REFERENCES folders ON DELETE CASCADE,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        num_pages INTEGER,
        part TEXT NOT NULL,
        source TEXT NOT NULL,
        digest TEXT NOT NULL,
        size INTEGER NOT NULL,
        modified_at REAL NOT NULL,
        PRIMARY KEY (folder_id, place)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX folder_documents_by_digest ON folder_documents (digest)",
    "DROP TRIGGER attachment_text_unused",
    _UNUSED_TEXT.format("attachment_text_unused", "attachments"),
    _UNUSED_TEXT.format("document_text_unused", "folder_documents"),
)

# The model with which the user continues a conversation of another model.
_M019: Migration = ("ALTER TABLE conversations ADD COLUMN chosen_model TEXT NOT NULL DEFAULT ''",)

MIGRATIONS: tuple[Migration, ...] = (
    _M001, _M002, _M003, _M004, _M005, _M006, _M007, _M008, _M009, _M010, _M011,
    _M012, _M013, _M014, _M015, _M016, _M017, _M018, _M019,
)  # fmt: skip
