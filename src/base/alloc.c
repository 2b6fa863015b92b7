#include "base/alloc.h"

#include "base/status.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static TIDE_NORETURN void no_memory(void)
{
    tide_none_left("memory", ENOMEM, "give it more, then go on with the same command");
}

void *tide_alloc(size_t count, size_t size)
{
    void *ptr = calloc(count == 0 ? 1 : count, size);
    if (TIDE_UNLIKELY(ptr == NULL)) {
        no_memory();
    }
    return ptr;
}

void *tide_realloc(void *ptr, size_t count, size_t size)
{
    TIDE_ASSERT(size > 0 && count <= SIZE_MAX / size);
    void *grown = realloc(ptr, count == 0 ? size : count * size);
    if (TIDE_UNLIKELY(grown == NULL)) {
        no_memory();
    }
    return grown;
}

char *tide_strndup(const char *ptr, size_t len)
{
    char *copy = tide_alloc(len + 1, 1);
    if (len > 0) {
        memcpy(copy, ptr, len);
    }
    return copy;
}

void tide_free_ptr(void *ptr_to_variable)
{
    void *ptr = NULL;
    memcpy(&ptr, ptr_to_variable, sizeof(ptr));
    free(ptr);
}
