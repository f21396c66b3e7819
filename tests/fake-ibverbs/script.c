/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: the lock, the begin and the end of each verb, and
 * the test at the other end of the socket.
 */
#include "qemu/osdep.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
FakeState fake;

void fake_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void fake_wait(void)
{
    pthread_cond_wait(&changed, &lock);
}

void fake_changed(void)
{
    pthread_cond_broadcast(&changed);
}

int fake_begin(const char *verb)
{
    fake_lock();
    return fake_rule_apply(verb);
}

static void G_GNUC_PRINTF(3, 0)
note(const char *verb, int err, const char *fmt, va_list ap)
{
    g_autofree char *detail = g_strdup_vprintf(fmt, ap);

    if (verb) {
        fake_log_add(verb, err, detail);
    }
    fake_unlock();
}

int fake_end(const char *verb, int err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note(verb, err, fmt, ap);
    va_end(ap);
    return err;
}

void *fake_end_ptr(const char *verb, int err, void *result,
                   const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note(verb, err, fmt, ap);
    va_end(ap);
    if (err) {
        errno = err;
    }
    return err ? NULL : result;
}

/*
 * No FILE: exit() takes the lock of each, from glibc 2.41 on, and a thread that
 * waits for input holds it.
 */
static void serve(int fd)
{
    GIOChannel *channel = g_io_channel_unix_new(fd);
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GString) answer = g_string_new(NULL);

    g_io_channel_set_encoding(channel, NULL, NULL);
    g_io_channel_set_close_on_unref(channel, true);
    while (g_io_channel_read_line_string(channel, line, NULL, NULL) ==
           G_IO_STATUS_NORMAL) {
        g_string_truncate(answer, 0);
        fake_lock();
        fake_command(g_strstrip(line->str), answer);
        fake_unlock();
        if (g_io_channel_write_chars(channel, answer->str, answer->len, NULL,
                                     NULL) != G_IO_STATUS_NORMAL ||
            g_io_channel_flush(channel, NULL) != G_IO_STATUS_NORMAL) {
            break;
        }
    }
    g_io_channel_unref(channel);
}

static void *server(void *opaque)
{
    int listener = GPOINTER_TO_INT(opaque);
    int fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        serve(fd);
        fake_lock();
        fake_rule_release(NULL);
        fake_unlock();
    }
    return NULL;
}

static void start_server(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sigset_t all, old;
    pthread_t thread;

    if (g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path)) >=
            sizeof(addr.sun_path) || fd < 0 ||
        bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1)) {
        fprintf(stderr, "fake-ibverbs: cannot listen on %s: %s\n", path,
                strerror(errno));
        abort();
    }
    /* Signals are the program's business */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, NULL, server, GINT_TO_POINTER(fd))) {
        abort();
    }
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void __attribute__((constructor)) load(void)
{
    const char *script = getenv(FAKE_IBVERBS_SCRIPT);
    const char *path = getenv(FAKE_IBVERBS_SOCKET);
    g_autoptr(GString) answer = g_string_new(NULL);

    fake_device_init();
    if (script) {
        g_auto(GStrv) lines = g_strsplit(script, ";", -1);

        for (int i = 0; lines[i]; i++) {
            fake_command(g_strstrip(lines[i]), answer);
            if (strstr(answer->str, "error:")) {
                fprintf(stderr, "fake-ibverbs: \"%s\": %s", lines[i],
                        answer->str);
                abort();
            }
        }
    }
    if (path) {
        start_server(path);
    }
    /* Not for the children of this process */
    unsetenv(FAKE_IBVERBS_SCRIPT);
    unsetenv(FAKE_IBVERBS_SOCKET);
}
