/* A fault at the n-th file call of a whole process tree.

   Preloaded (LD_PRELOAD) into every process of an operation, it counts each call that changes a file below
   one folder. The counter is a shared page, so Python and every git it starts count together. When the
   counter reaches FAULT_AT, the call does not happen as asked:

     kill    the process group dies (SIGKILL) before the call
     torn    half of a write happens, then the process group dies
     short   half of a write happens and is reported as such
     ENOSPC, EIO, EROFS   the call fails with that error

   FAULT_COUNTER  file of the shared page; without it nothing is counted
   FAULT_ROOT     only paths below this folder count
   FAULT_AT       which call; FAULT_STICKY=1: that one and all after it
   FAULT_ACT      what happens
   FAULT_LOG      one line per call: number, pid, call, path */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum act { NOTHING, KILL, TORN, SHORT, FAIL };

static struct {
    volatile long *counter;
    const char *root, *log;
    long at;
    int sticky, error;
    enum act act;
} plan;

static void read_act(const char *name) {
    static const struct { const char *name; enum act act; int error; } acts[] = {
        {"kill", KILL, 0}, {"torn", TORN, 0}, {"short", SHORT, 0},
        {"ENOSPC", FAIL, ENOSPC}, {"EIO", FAIL, EIO}, {"EROFS", FAIL, EROFS},
    };
    for (size_t i = 0; name && i < sizeof acts / sizeof *acts; i++)
        if (!strcmp(name, acts[i].name)) {
            plan.act = acts[i].act;
            plan.error = acts[i].error;
        }
}

/* The real system calls are used here: our own calls must not be counted. */
__attribute__((constructor)) static void start(void) {
    const char *page = getenv("FAULT_COUNTER"), *at = getenv("FAULT_AT");
    plan.root = getenv("FAULT_ROOT");
    if (!page || !plan.root) return;
    int fd = syscall(SYS_openat, AT_FDCWD, page, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *shared = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (shared == MAP_FAILED) return;
    plan.at = at ? atol(at) : 0;
    plan.sticky = getenv("FAULT_STICKY") != NULL;
    plan.log = getenv("FAULT_LOG");
    read_act(getenv("FAULT_ACT"));
    plan.counter = shared;
}

static void die(void) {
    kill(0, SIGKILL);
    for (;;) pause();
}

static int name_of_fd(int fd, char *path, size_t size) {
    char link[64];
    if (fd == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
    path[length > 0 ? length : 0] = 0;
    return length > 0;
}

static int below_root(const char *path) {
    size_t length = strlen(plan.root);
    return !strncmp(path, plan.root, length) && (path[length] == '/' || path[length] == 0);
}

static void note(long number, const char *call, const char *path) {
    char line[4400];
    int length = snprintf(line, sizeof line, "%ld %d %s %s\n", number, getpid(), call, path);
    int fd = syscall(SYS_openat, AT_FDCWD, plan.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    syscall(SYS_write, fd, line, (size_t)length);
    syscall(SYS_close, fd);
}

static enum act count(const char *call, const char *path) {
    if (!below_root(path)) return NOTHING;
    long number = __sync_add_and_fetch(plan.counter, 1);
    if (plan.log) note(number, call, path);
    if (plan.at <= 0 || number < plan.at || (number > plan.at && !plan.sticky)) return NOTHING;
    if (plan.act == KILL) die();
    return plan.act;
}

/* A call on an open file: only its path counts, not where it is opened from. */
static enum act by_fd(const char *call, int fd) {
    char path[4096];
    if (!plan.counter || !name_of_fd(fd, path, sizeof path)) return NOTHING;
    return count(call, path);
}

static enum act by_path(const char *call, int folder, const char *name) {
    char path[4096];
    if (!plan.counter || !name) return NOTHING;
    if (name[0] == '/') return count(call, name);
    if (!name_of_fd(folder, path, sizeof path)) return NOTHING;
    size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, "/%s", name);
    return count(call, path);
}

#define REAL(result, name, ...)                                   \
    static result (*real)(__VA_ARGS__);                           \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define FAIL_IF(asked)                                            \
    do {                                                          \
        if ((asked) == FAIL) { errno = plan.error; return -1; }   \
    } while (0)

/* ---------------------------------------------------------------- writing: may also be short or torn */

#define WRITES(name, call, parameters, size, whole, half, ...)    \
    ssize_t name parameters {                                     \
        REAL(ssize_t, name, __VA_ARGS__);                         \
        enum act act = by_fd(call, fd);                           \
        FAIL_IF(act);                                             \
        if (act == TORN) { half; die(); }                         \
        if (act == SHORT && (size) > 1) return half;              \
        return whole;                                             \
    }

WRITES(write, "write", (int fd, const void *data, size_t n), n,
       real(fd, data, n), real(fd, data, n / 2), int, const void *, size_t)
WRITES(pwrite, "pwrite", (int fd, const void *data, size_t n, off_t at), n,
       real(fd, data, n, at), real(fd, data, n / 2, at), int, const void *, size_t, off_t)
WRITES(pwrite64, "pwrite", (int fd, const void *data, size_t n, off64_t at), n,
       real(fd, data, n, at), real(fd, data, n / 2, at), int, const void *, size_t, off64_t)
WRITES(writev, "writev", (int fd, const struct iovec *parts, int n), n,
       real(fd, parts, n), real(fd, parts, n / 2), int, const struct iovec *, int)

/* ---------------------------------------------------------------- calls on an open file */

/* A read-only file system has nothing to sync, and syncing it succeeds. */
#define SYNCS(name)                                               \
    int name(int fd) {                                            \
        REAL(int, name, int);                                     \
        enum act act = by_fd(#name, fd);                          \
        if (plan.error != EROFS) FAIL_IF(act);                    \
        return real(fd);                                          \
    }

SYNCS(fsync)
SYNCS(fdatasync)

#define ON_FD(name, parameters, whole, ...)                       \
    int name parameters {                                         \
        REAL(int, name, __VA_ARGS__);                             \
        FAIL_IF(by_fd(#name, fd));                                \
        return whole;                                             \
    }

ON_FD(ftruncate, (int fd, off_t n), real(fd, n), int, off_t)
ON_FD(ftruncate64, (int fd, off64_t n), real(fd, n), int, off64_t)
ON_FD(fchmod, (int fd, mode_t mode), real(fd, mode), int, mode_t)

/* ---------------------------------------------------------------- calls on names */

#define ON_NAME(name, parameters, folder, path, whole, ...)       \
    int name parameters {                                         \
        REAL(int, name, __VA_ARGS__);                             \
        FAIL_IF(by_path(#name, folder, path));                    \
        return whole;                                             \
    }

ON_NAME(rename, (const char *from, const char *to), AT_FDCWD, to, real(from, to), const char *, const char *)
ON_NAME(renameat, (int a, const char *from, int b, const char *to), b, to, real(a, from, b, to),
        int, const char *, int, const char *)
ON_NAME(renameat2, (int a, const char *from, int b, const char *to, unsigned how), b, to,
        real(a, from, b, to, how), int, const char *, int, const char *, unsigned)
ON_NAME(link, (const char *from, const char *to), AT_FDCWD, to, real(from, to), const char *, const char *)
ON_NAME(linkat, (int a, const char *from, int b, const char *to, int how), b, to,
        real(a, from, b, to, how), int, const char *, int, const char *, int)
ON_NAME(symlink, (const char *from, const char *to), AT_FDCWD, to, real(from, to), const char *, const char *)
ON_NAME(symlinkat, (const char *from, int folder, const char *to), folder, to, real(from, folder, to),
        const char *, int, const char *)
ON_NAME(unlink, (const char *name), AT_FDCWD, name, real(name), const char *)
ON_NAME(unlinkat, (int folder, const char *name, int how), folder, name, real(folder, name, how),
        int, const char *, int)
ON_NAME(rmdir, (const char *name), AT_FDCWD, name, real(name), const char *)
ON_NAME(mkdir, (const char *name, mode_t mode), AT_FDCWD, name, real(name, mode), const char *, mode_t)
ON_NAME(mkdirat, (int folder, const char *name, mode_t mode), folder, name, real(folder, name, mode),
        int, const char *, mode_t)
ON_NAME(chmod, (const char *name, mode_t mode), AT_FDCWD, name, real(name, mode), const char *, mode_t)
ON_NAME(fchmodat, (int folder, const char *name, mode_t mode, int how), folder, name,
        real(folder, name, mode, how), int, const char *, mode_t, int)
ON_NAME(truncate, (const char *name, off_t n), AT_FDCWD, name, real(name, n), const char *, off_t)
ON_NAME(truncate64, (const char *name, off64_t n), AT_FDCWD, name, real(name, n), const char *, off64_t)

/* ---------------------------------------------------------------- opening: counts when it can write */

#define CAN_WRITE (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

#define OPENS(name, parameters, folder, path, whole, ...)         \
    int name parameters {                                         \
        REAL(int, name, __VA_ARGS__);                             \
        va_list rest;                                             \
        va_start(rest, flags);                                    \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                             \
        if (flags & CAN_WRITE) FAIL_IF(by_path("open", folder, path)); \
        return whole;                                             \
    }

OPENS(open, (const char *path, int flags, ...), AT_FDCWD, path, real(path, flags, mode), const char *, int, ...)
OPENS(open64, (const char *path, int flags, ...), AT_FDCWD, path, real(path, flags, mode), const char *, int, ...)
OPENS(openat, (int folder, const char *path, int flags, ...), folder, path, real(folder, path, flags, mode),
      int, const char *, int, ...)
OPENS(openat64, (int folder, const char *path, int flags, ...), folder, path, real(folder, path, flags, mode),
      int, const char *, int, ...)

static FILE *open_stream(const char *path, const char *how, FILE *(*real)(const char *, const char *)) {
    if (strpbrk(how, "wa+") && by_path("fopen", AT_FDCWD, path) == FAIL) {
        errno = plan.error;
        return NULL;
    }
    return real(path, how);
}

FILE *fopen(const char *path, const char *how) {
    REAL(FILE *, fopen, const char *, const char *);
    return open_stream(path, how, real);
}

FILE *fopen64(const char *path, const char *how) {
    REAL(FILE *, fopen64, const char *, const char *);
    return open_stream(path, how, real);
}
