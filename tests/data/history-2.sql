-- history.db as version 2 made it, with a run of one task that failed: for tests/cli/history.sh.
CREATE TABLE names(  id INTEGER PRIMARY KEY,  name TEXT NOT NULL UNIQUE);
CREATE TABLE runs(  id INTEGER PRIMARY KEY,  run_id TEXT NOT NULL UNIQUE,  command TEXT NOT NULL,  started_ns INTEGER NOT NULL,  ended_ns INTEGER NOT NULL,  concurrency INTEGER NOT NULL,  exit_code INTEGER NOT NULL,  ntasks INTEGER NOT NULL);
CREATE TABLE tasks(  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,  task INTEGER NOT NULL,  status TEXT NOT NULL,  cache TEXT NOT NULL,  key BLOB,  exit_code INTEGER NOT NULL,  duration_ns INTEGER NOT NULL,  cpu_us INTEGER NOT NULL,  peak_rss_kb INTEGER NOT NULL,  started_ns INTEGER NOT NULL,  timed_out INTEGER NOT NULL,  blocked_by INTEGER,  findings INTEGER NOT NULL,  PRIMARY KEY(run, task)) WITHOUT ROWID;
CREATE INDEX tasks_executed ON tasks(task, run)  WHERE status = 'success' AND cache IN ('miss', 'no-cache');
CREATE TABLE denials(  run INTEGER NOT NULL,  task INTEGER NOT NULL,  n INTEGER NOT NULL,  op TEXT NOT NULL,  path TEXT NOT NULL,  class TEXT NOT NULL,  program TEXT,  pid INTEGER NOT NULL,  grant_text TEXT,  PRIMARY KEY(run, task, n),  FOREIGN KEY(run, task) REFERENCES tasks(run, task) ON DELETE CASCADE) WITHOUT ROWID;
CREATE TABLE key_texts(  key BLOB PRIMARY KEY,  text BLOB NOT NULL,  added_ns INTEGER NOT NULL);
CREATE INDEX key_texts_added ON key_texts(added_ns);
ALTER TABLE runs ADD COLUMN hits BLOB;
PRAGMA user_version = 2;
INSERT INTO names VALUES(1, 'p#build');
INSERT INTO runs VALUES(1, 'r', 'vx run', 4000000000000000000, 4000000000000000001, 1, 1, 1, NULL);
INSERT INTO tasks VALUES(1, 1, 'failed', 'miss', zeroblob(32), 1, 7000000, 0, 0, 4000000000000000000, 0, NULL, 0);
