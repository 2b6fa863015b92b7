/*
 * A file system for SQLite (https://www.sqlite.org/vfs.html) that writes what follows one another
 * in one call, up to 64 KiB: SQLite writes each page by itself, and in its log each with a header
 * before it. Gathered are the log, and a database that has none open (journal_mode = DELETE); what
 * is folded from the log into the database goes straight there. It waits in memory until SQLite
 * asks for the file to be synced, or to be read where it belongs, or shows it to others; all else
 * is that of the usual file system.
 *
 * For connections that sync what they commit (synchronous = FULL): else a commit that cannot be
 * written would not be told so.
 */
#pragma once

/**
 * Its name, for sqlite3_open_v2; NULL, which is the usual one's, where it cannot be had. Registered
 * once and for good. Any thread.
 */
const char *tide_gather_vfs(void);
