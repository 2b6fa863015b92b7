INSERT INTO plain VALUES (1, 'one', 1.500, '2026-11-29 13:40:55.5+00', 'happy', 9.99), (-9223372036854775808, '', NULL, NULL, NULL, NULL)
UPDATE plain SET name = E'tab\tline\nend' WHERE id = 1
UPDATE plain SET id = 2 WHERE id = 1
DELETE FROM plain WHERE id = 2
INSERT INTO whole VALUES (1, 'old')
UPDATE whole SET note = NULL
UPDATE whole SET id = 7, note = 'new'
DELETE FROM whole
INSERT INTO by_index VALUES (3, 'x', 'n')
UPDATE by_index SET id = 70
UPDATE by_index SET code = 'y'
DELETE FROM by_index
INSERT INTO nothing VALUES ('x')
INSERT INTO "we ird"."quo""te, Ж" VALUES (1, 2, 'drei', '\x00ff')
INSERT INTO big VALUES (1, repeat('abcdefgh', 500), 1)
UPDATE big SET n = 2
UPDATE big SET id = 50
INSERT INTO big_whole VALUES (1, repeat('abcdefgh', 500), 1)
UPDATE big_whole SET n = 2
INSERT INTO no_columns DEFAULT VALUES
ALTER TABLE whole ADD COLUMN extra int DEFAULT 5; INSERT INTO whole VALUES (8, 'eight')
TRUNCATE whole
TRUNCATE plain, big RESTART IDENTITY CASCADE
SELECT pg_logical_emit_message(true, 'tidemark', '')
SELECT pg_logical_emit_message(false, 'other', '\x0001ff'::bytea)
SELECT pg_replication_origin_session_setup('elsewhere'); BEGIN; SELECT pg_replication_origin_xact_setup('1A/2B3C4D', '2026-01-02 03:04:05+00'); INSERT INTO whole VALUES (9, 'from elsewhere'); COMMIT
