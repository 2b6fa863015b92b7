#include <stdio.h>

int main(void)
{
    (void)puts("tidemark " TIDE_VERSION);
    return 0;
}
