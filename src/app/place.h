/* Places as users write them, where they are URLs: how they may be shown, what names them. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/**
 * Appends the place as it may be shown to anyone: the password of `scheme://user:password@…` and
 * of a query's `…password=` as `***`. A place without `://`, or
 * of a file, is appended as it is.
 */
void tide_place_append_shown(struct tide_buf *buf, tide_str place);

/**
 * The database that a URL names: its path, else `dbname=` of its query, else the user, else
 * "postgres". Borrows from `url` (not decoded). Empty when `place` is no URL.
 */
tide_str tide_place_url_database(tide_str place);
