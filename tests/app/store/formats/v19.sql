-- A database as the fourth released format wrote it. Never edited: what people have must stay readable.
BEGIN TRANSACTION;
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
    , keep_ready INTEGER NOT NULL DEFAULT 0) STRICT
    ;
INSERT INTO "conversations" VALUES('A','By hand',1,0.0,5.0,NULL,'{"temperature":0.5,"top_p":null,"top_k":null,"min_p":null,"repetition_penalty":null,"seed":null,"max_tokens":9,"thinking":false}','Be brief.','Be brief.','five',1);
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
    , seed INTEGER, deleted_at REAL, passes INTEGER DEFAULT 0, drafted_tokens INTEGER DEFAULT 0, accepted_tokens INTEGER DEFAULT 0) STRICT
    ;
INSERT INTO "messages" VALUES(1,'A1u','A',NULL,'user','complete',1.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'one','',NULL,NULL,NULL,0,0,0);
INSERT INTO "messages" VALUES(2,'A1r','A','A1u','assistant','complete',1.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,'tokenizer','1','',X'050000002C01000000286BEE',NULL,NULL,0,0,0);
INSERT INTO "messages" VALUES(3,'A2r','A','A1u','assistant','complete',2.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,'tokenizer','1b','',X'050000002C01000000286BEE',NULL,NULL,0,0,0);
INSERT INTO "messages" VALUES(4,'A3u','A','A1r','user','complete',3.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'two','',NULL,NULL,NULL,0,0,0);
INSERT INTO "messages" VALUES(5,'A3r','A','A3u','assistant','complete',3.0,'{"model_path":"/models/tiny","model_name":"Tiny 1B","template_hash":"template","thinking":null,"sampling":{"temperature":0.25,"top_p":0.95,"top_k":0,"min_p":0.0,"repetition_penalty":1.0,"presence_penalty":0.0,"frequency_penalty":0.0,"seed":0},"max_tokens":64,"usage":null,"finish_reason":null}','stop',12,8,1,3,'[{"kind":"fault","num_tokens":1,"at":8,"text":"A saved state was wrong."},{"kind":"new_message","num_tokens":3,"at":9,"text":"Message 3 is new: 3 tokens."}]',3,0.25,0.5,1.5,20.125,22.0,123.75,60.5,4096,NULL,1,'tokenizer','2','hm',X'050000002C01000000286BEE',7,NULL,2,3,1);
INSERT INTO "messages" VALUES(6,'A4u','A','A3r','user','complete',4.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'three','',NULL,NULL,NULL,0,0,0);
INSERT INTO "messages" VALUES(7,'A4r','A','A4u','assistant','failed',4.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"title":"No memory.","cause":"9 of 8 GB.","advice":"Close something.","details":"x"}',NULL,NULL,'','',NULL,NULL,NULL,0,0,0);
INSERT INTO "messages" VALUES(8,'A5u','A','A4r','user','complete',5.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'four','',NULL,NULL,NULL,0,0,0);
INSERT INTO "messages" VALUES(9,'A5r','A','A5u','assistant','streaming',5.0,'{"model_path":"/models/tiny","model_name":"Tiny 1B","template_hash":"template","thinking":null,"sampling":{"temperature":0.25,"top_p":0.95,"top_k":0,"min_p":0.0,"repetition_penalty":1.0,"presence_penalty":0.0,"frequency_penalty":0.0,"seed":0},"max_tokens":64,"usage":null,"finish_reason":null}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'','',NULL,7,NULL,0,0,0);
INSERT INTO "messages" VALUES(10,'A6r','A','A1u','assistant','complete',6.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,'tokenizer','gone','',X'050000002C01000000286BEE',NULL,6.5,0,0,0);
CREATE TABLE model_presets (
        model_path TEXT PRIMARY KEY,
        name TEXT NOT NULL REFERENCES presets ON DELETE CASCADE
    ) STRICT
    ;
INSERT INTO "model_presets" VALUES('/models/tiny','Teacher');
CREATE TABLE presets (
        name TEXT PRIMARY KEY,
        system_prompt TEXT NOT NULL,
        setup TEXT NOT NULL
    ) STRICT
    ;
INSERT INTO "presets" VALUES('Teacher','Be patient.','{"temperature":0.5,"max_tokens":9}');
CREATE TABLE shown_versions (
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        parent TEXT NOT NULL,  -- '' for the first message
        node_id TEXT NOT NULL,
        PRIMARY KEY (conversation_id, parent)
    ) STRICT, WITHOUT ROWID
    ;
INSERT INTO "shown_versions" VALUES('A','A1u','A1r');
CREATE INDEX messages_by_conversation ON messages (conversation_id);
CREATE INDEX messages_streaming ON messages (status) WHERE status = 'streaming';
CREATE INDEX messages_deleted ON messages (deleted_at) WHERE deleted_at IS NOT NULL;

    CREATE VIRTUAL TABLE message_search USING fts5 (
        text, content = '', columnsize = 0, prefix = '2 3',
        tokenize = 'unicode61 remove_diacritics 2'
    )
    ;
CREATE TABLE search_progress (first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT;

    INSERT INTO search_progress
    SELECT 1, coalesce(max(message_number), 0) FROM messages
    ;

    CREATE TRIGGER search_insert AFTER INSERT ON messages
    WHEN new.status <> 'streaming' AND NOT EXISTS (SELECT 1 FROM search_progress WHERE new.message_number BETWEEN first AND last)
    BEGIN INSERT INTO message_search (rowid, text) SELECT new.message_number, search_text(new.content); END
    ;

    CREATE TRIGGER search_delete AFTER DELETE ON messages
    WHEN old.status <> 'streaming' AND NOT EXISTS (SELECT 1 FROM search_progress WHERE old.message_number BETWEEN first AND last)
    BEGIN INSERT INTO message_search (message_search, rowid, text) SELECT 'delete', old.message_number, search_text(old.content); END
    ;

    CREATE TRIGGER search_update AFTER UPDATE OF content, status ON messages
    WHEN (old.content <> new.content OR old.status <> new.status) AND NOT EXISTS (SELECT 1 FROM search_progress WHERE new.message_number BETWEEN first AND last)
    BEGIN
        INSERT INTO message_search (message_search, rowid, text) SELECT 'delete', old.message_number, search_text(old.content) WHERE old.status <> 'streaming';
        INSERT INTO message_search (rowid, text) SELECT new.message_number, search_text(new.content) WHERE new.status <> 'streaming';
    END
    ;
ALTER TABLE messages ADD COLUMN restored_disk INTEGER DEFAULT 0;
ALTER TABLE messages ADD COLUMN disk_ms REAL DEFAULT 0;
ALTER TABLE messages ADD COLUMN written_bytes INTEGER DEFAULT 0;
UPDATE messages SET restored_disk = 2, disk_ms = 1.5, written_bytes = 900 WHERE passes = 2;
ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN folder_id TEXT;

    CREATE TABLE folders (
        folder_id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        color TEXT NOT NULL,
        created_at REAL NOT NULL,
        deleted_at REAL,
        system_prompt TEXT NOT NULL,
        preset TEXT NOT NULL  -- '' for none
    ) STRICT
    ;
UPDATE conversations SET pinned = 1, folder_id = 'F';
INSERT INTO folders VALUES ('F', 'Work', 'blue', 1.0, NULL, 'Be exact.', 'Teacher');

    CREATE TABLE attachment_texts (
        text_number INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        text TEXT NOT NULL
    ) STRICT
    
    ;

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
    
    ;
CREATE INDEX attachments_by_digest ON attachments (digest)
    ;

    CREATE VIRTUAL TABLE attachment_search USING fts5 (
        text, content = '', columnsize = 0, prefix = '2 3',
        tokenize = 'unicode61 remove_diacritics 2'
    )
    
    ;

    CREATE TRIGGER attachments_of_message AFTER DELETE ON messages
    BEGIN
        DELETE FROM attachments
        WHERE conversation_id = old.conversation_id AND node_id = old.node_id;
    END
    
    ;

    CREATE TRIGGER attachment_text_unused AFTER DELETE ON attachments
    WHEN NOT EXISTS (SELECT 1 FROM attachments WHERE digest = old.digest)
    BEGIN DELETE FROM attachment_texts WHERE digest = old.digest; END
    
    ;

    CREATE TRIGGER attachment_text_insert AFTER INSERT ON attachment_texts
    BEGIN
        INSERT INTO attachment_search (rowid, text)
        SELECT new.text_number, search_text(new.text);
    END
    
    ;

    CREATE TRIGGER attachment_text_delete AFTER DELETE ON attachment_texts
    BEGIN
        INSERT INTO attachment_search (attachment_search, rowid, text)
        SELECT 'delete', old.text_number, search_text(old.text);
    END
    
    ;
INSERT INTO attachment_texts (digest, text) VALUES ('d1', 'The first file.');
INSERT INTO attachments VALUES ('A','A1u',0,'first.txt','text',NULL,'','/tmp/first.txt','d1');
INSERT INTO attachments VALUES ('A','',0,'draft.pdf','pdf',3,'Page 2','','d1');

    CREATE TABLE message_checks (
        message_number INTEGER PRIMARY KEY,
        checksum INTEGER NOT NULL
    ) STRICT
    ;
INSERT INTO message_checks VALUES (1,2053932785);
INSERT INTO message_checks VALUES (2,2212294583);
INSERT INTO message_checks VALUES (3,607655225);
INSERT INTO message_checks VALUES (4,298486374);
INSERT INTO message_checks VALUES (5,2701199328);
INSERT INTO message_checks VALUES (6,1187371253);
INSERT INTO message_checks VALUES (7,0);
INSERT INTO message_checks VALUES (8,2428593789);
INSERT INTO message_checks VALUES (9,0);
INSERT INTO message_checks VALUES (10,43536197);
CREATE TRIGGER check_insert AFTER INSERT ON messages BEGIN INSERT INTO message_checks VALUES (new.message_number, text_checksum(new.content, new.reasoning)) ON CONFLICT (message_number) DO UPDATE SET checksum = excluded.checksum; END
    ;

    CREATE TRIGGER check_update AFTER UPDATE OF content, reasoning ON messages
    BEGIN INSERT INTO message_checks VALUES (new.message_number, text_checksum(new.content, new.reasoning)) ON CONFLICT (message_number) DO UPDATE SET checksum = excluded.checksum; END
    ;

    CREATE TRIGGER check_delete AFTER DELETE ON messages
    BEGIN DELETE FROM message_checks WHERE message_number = old.message_number; END
    ;
ALTER TABLE conversations ADD COLUMN unseen INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET unseen = 1;
ALTER TABLE conversations ADD COLUMN draft_was_sent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN chat_title TEXT;
UPDATE messages SET chat_title = 'Counting' WHERE parent IS NULL;
ALTER TABLE messages ADD COLUMN load_ms REAL DEFAULT 0;
ALTER TABLE messages ADD COLUMN restored_ahead INTEGER DEFAULT 0;
ALTER TABLE messages ADD COLUMN saved_ms REAL DEFAULT 0;
UPDATE messages SET saved_ms = 1500.5;
ALTER TABLE conversations ADD COLUMN draft_edits TEXT NOT NULL DEFAULT '{}';
UPDATE conversations SET draft_edits = '{"edits":[{"node_id":"A3u","text":"two and a half"}]}';
ALTER TABLE attachments ADD COLUMN picture TEXT;
INSERT INTO attachments VALUES ('A','A1u',1,'photo.jpg','picture',NULL,'','/tmp/photo.jpg','2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b','{"original":"1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a","extension":"jpg","width":4032,"height":3024,"size":"medium","view":{"digest":"2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b","width":1280,"height":960}}');
INSERT INTO attachments VALUES ('A','',1,'Screenshot.png','picture',NULL,'','','4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d','{"original":"3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c","extension":"png","width":20,"height":10,"size":"full","view":{"digest":"4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d","width":20,"height":10}}');
ALTER TABLE attachments ADD COLUMN from_folder INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN without_documents INTEGER NOT NULL DEFAULT 0;
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
    ) STRICT, WITHOUT ROWID;
CREATE INDEX folder_documents_by_digest ON folder_documents (digest);
DROP TRIGGER attachment_text_unused;
CREATE TRIGGER attachment_text_unused AFTER DELETE ON attachments
    WHEN NOT EXISTS (SELECT 1 FROM attachments WHERE digest = old.digest)
        AND NOT EXISTS (SELECT 1 FROM folder_documents WHERE digest = old.digest)
    BEGIN DELETE FROM attachment_texts WHERE digest = old.digest; END;
CREATE TRIGGER document_text_unused AFTER DELETE ON folder_documents
    WHEN NOT EXISTS (SELECT 1 FROM attachments WHERE digest = old.digest)
        AND NOT EXISTS (SELECT 1 FROM folder_documents WHERE digest = old.digest)
    BEGIN DELETE FROM attachment_texts WHERE digest = old.digest; END;
UPDATE attachments SET from_folder = 1 WHERE name = 'first.txt';
UPDATE conversations SET without_documents = 1;
INSERT INTO attachment_texts (digest, text) VALUES ('13decaaca03f6b6f9a57ad9c8ddcc7947cfa6af209755e3401c5463403861c9f','The rules.');
INSERT INTO folder_documents VALUES ('F',0,'rules.txt','text',NULL,'','/tmp/rules.txt','13decaaca03f6b6f9a57ad9c8ddcc7947cfa6af209755e3401c5463403861c9f',10,2.5);
ALTER TABLE conversations ADD COLUMN chosen_model TEXT NOT NULL DEFAULT '';
UPDATE conversations SET chosen_model = '/models/other';
PRAGMA user_version = 19;
COMMIT;
