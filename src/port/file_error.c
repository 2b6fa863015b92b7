#include "port/file_error.h"

#include <errno.h>
#include <string.h>

static bool is_lasting(int error)
{
    static const int lasting[] = {EEXIST, ELOOP, ENOTDIR, EISDIR,       EACCES,
                                  EPERM,  EROFS, ENOENT,  ENAMETOOLONG, EBADF};
    for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++) {
        if (error == lasting[i]) {
            return true;
        }
    }
    return false;
}

void tide_file_judge(struct tide_error *err, int error)
{
    err->retriable = !is_lasting(error);
}

tide_status tide_file_fail(struct tide_error *err, int error, const char *what, const char *path)
{
    (void)tide_fail(err, TIDE_IO, "cannot %s %s: %s", what, path, strerror(error));
    tide_file_judge(err, error);
    return TIDE_IO;
}
