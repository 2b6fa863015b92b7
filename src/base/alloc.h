/* Allocation that cannot fail: running out of memory aborts (see status.h). */
#pragma once

#include <stddef.h>

/** Zeroed memory for `count` elements of `size` bytes; never NULL. Freed with free(). */
void *tide_alloc(size_t count, size_t size);

/** Grows or shrinks like realloc to `count` elements of `size` bytes; never NULL; new bytes not
 * zeroed. */
void *tide_realloc(void *ptr, size_t count, size_t size);

/** A NUL-terminated copy of `len` bytes; freed with free(). */
char *tide_strndup(const char *ptr, size_t len);

/** For TIDE_CLEANUP on a `char *` or any other pointer: frees what the variable points to. */
void tide_free_ptr(void *ptr_to_variable);
