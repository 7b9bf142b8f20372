/* Lets user-mode Linux 6.1 run on processors whose registers take more than the 2,696 bytes that it knows.
 *
 * It saves and restores the registers of its processes by ptrace, 2,696 bytes at a time, which is AVX-512 and
 * memory protection keys. Where the processor has more (AMX), Linux refuses to set a part alone, and the guest
 * ends at its first process. Preloaded, this sets all of them: what user-mode Linux knows from its copy, the rest
 * as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

static long (*libc_ptrace)(int, pid_t, void *, void *);
/* Not on the stack: that of user-mode Linux is small. One of its threads alone traces. */
static unsigned char registers[1 << 16];

__attribute__((constructor)) static void find(void) {
    libc_ptrace = (long (*)(int, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace");
}

long ptrace_with_all_registers(int request, pid_t pid, void *address, void *data) __asm__("ptrace");

long ptrace_with_all_registers(int request, pid_t pid, void *address, void *data) {
    struct iovec *known = data, all = {registers, sizeof registers};
    if (request != PTRACE_SETREGSET || (unsigned long)address != NT_X86_XSTATE)
        return libc_ptrace(request, pid, address, data);
    if (libc_ptrace(PTRACE_GETREGSET, pid, address, &all) < 0)
        return -1;
    memcpy(registers, known->iov_base, known->iov_len < all.iov_len ? known->iov_len : all.iov_len);
    return libc_ptrace(PTRACE_SETREGSET, pid, address, &all);
}
