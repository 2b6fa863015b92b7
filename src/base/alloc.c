#include "base/alloc.h"

#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *tide_alloc(size_t count, size_t size)
{
    void *ptr = calloc(count == 0 ? 1 : count, size);
    TIDE_ASSERT(ptr != NULL);
    return ptr;
}

void *tide_realloc(void *ptr, size_t count, size_t size)
{
    TIDE_ASSERT(size > 0 && count <= SIZE_MAX / size);
    void *grown = realloc(ptr, count == 0 ? size : count * size);
    TIDE_ASSERT(grown != NULL);
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
