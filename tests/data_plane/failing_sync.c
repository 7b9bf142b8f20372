/* Preloaded: fdatasync fails once for each time that the file FAILING_GATE is there, which goes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int descriptor)
{
    const char *gate = getenv("FAILING_GATE");
    if (gate && unlink(gate) == 0) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_fdatasync, descriptor);
}
