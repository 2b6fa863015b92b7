#include "app/control/control_socket.h"

#include "net/local.h"

tide_status tide_control_listen(const char *dir, int *ret_fd, struct tide_error *err)
{
    return tide_local_listen(dir, TIDE_CONTROL_SOCKET, ret_fd, err);
}

void tide_control_remove(const char *dir)
{
    tide_local_remove(dir, TIDE_CONTROL_SOCKET);
}

tide_status tide_control_connect(const char *dir, int64_t deadline_us, int *ret_fd,
                                 struct tide_error *err)
{
    return tide_local_connect(dir, TIDE_CONTROL_SOCKET, deadline_us, ret_fd, err);
}
