/* Preloaded: files whose names contain $SLOW_NAME reach the disk only while there is no file $SLOW_GATE. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fsync(int descriptor)
{
    const char *name = getenv("SLOW_NAME"), *gate = getenv("SLOW_GATE");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    while (name && gate && strstr(path, name) && access(gate, F_OK) == 0)
        usleep(10000);
    return syscall(SYS_fsync, descriptor);
}
