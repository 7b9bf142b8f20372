/* Preloaded: data is never brought to the disk on request. The negative control of the power cuts. */
#include <stddef.h>

int fsync(int descriptor) { (void)descriptor; return 0; }
int fdatasync(int descriptor) { (void)descriptor; return 0; }
int msync(void *address, size_t length, int flags) { (void)address; (void)length; (void)flags; return 0; }
void sync(void) {}
int syncfs(int descriptor) { (void)descriptor; return 0; }
int sync_file_range(int descriptor, long offset, long bytes, unsigned flags)
{
    (void)descriptor; (void)offset; (void)bytes; (void)flags;
    return 0;
}
