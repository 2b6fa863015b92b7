/*
 * A file system for SQLite (https://www.sqlite.org/vfs.html) that writes pages which follow one
 * another in one call: SQLite writes each by itself, and in its log each with a header before it.
 * They wait in memory, no longer than until SQLite asks for the file to be synced, or to be read
 * where they belong; all else is that of the usual file system.
 *
 * For connections that sync what they commit and what they fold into the file (synchronous = FULL):
 * then nothing is still waiting that another connection may look for.
 */
#pragma once

/**
 * Its name, for sqlite3_open_v2; NULL, which is the usual one's, where it cannot be had. Registered
 * once and for good. Any thread.
 */
const char *tide_gather_vfs(void);
