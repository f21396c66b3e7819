/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The test's side of the double of libibverbs.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "client.h"
#include "fake-ibverbs-dir.h"

#define LIBRARY_PATH "LD_LIBRARY_PATH"

FakeVerbs *fake_verbs_new(const char *script)
{
    FakeVerbs *f = g_new0(FakeVerbs, 1);

    f->dir = g_dir_make_tmp("fake-ibverbs-XXXXXX", NULL);
    g_assert_nonnull(f->dir);
    f->path = g_build_filename(f->dir, "socket", NULL);
    g_setenv(LIBRARY_PATH, FAKE_IBVERBS_DIR, true);
    g_setenv(FAKE_IBVERBS_SOCKET, f->path, true);
    if (script) {
        g_setenv(FAKE_IBVERBS_SCRIPT, script, true);
    }
    return f;
}

static void forget_environment(void)
{
    g_unsetenv(LIBRARY_PATH);
    g_unsetenv(FAKE_IBVERBS_SOCKET);
    g_unsetenv(FAKE_IBVERBS_SCRIPT);
}

void fake_verbs_started(FakeVerbs *f)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    forget_environment();
    g_assert_cmpint(fd, >=, 0);
    g_strlcpy(addr.sun_path, f->path, sizeof(addr.sun_path));
    /* The double listens before main() of the process runs */
    g_assert_cmpint(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), ==,
                    0);
    f->in = fdopen(fd, "r");
    f->out = fdopen(dup(fd), "w");
}

void fake_verbs_free(FakeVerbs *f)
{
    if (f->in) {
        fclose(f->in);
        fclose(f->out);
    } else {
        forget_environment();
    }
    g_unlink(f->path);
    g_rmdir(f->dir);
    g_free(f->path);
    g_free(f->dir);
    g_free(f);
}

/* The answer without its last line, which is in *@last. */
static char *execute(FakeVerbs *f, const char *command, char **last)
{
    g_autoptr(GString) answer = g_string_new(NULL);
    g_autofree char *line = NULL;
    char *buffer = NULL;
    size_t size = 0;

    fprintf(f->out, "%s\n", command);
    fflush(f->out);
    while (getline(&buffer, &size, f->in) > 0) {
        if (!strcmp(buffer, "ok\n") || g_str_has_prefix(buffer, "error: ")) {
            line = g_strdup(g_strstrip(buffer));
            break;
        }
        g_string_append(answer, buffer);
    }
    free(buffer);
    if (!line) {
        g_error("%s: the process with the double is gone", command);
    }
    *last = g_steal_pointer(&line);
    return g_strdup(answer->str);
}

static char *expect_ok(FakeVerbs *f, const char *command)
{
    g_autofree char *last = NULL;
    char *answer = execute(f, command, &last);

    if (strcmp(last, "ok")) {
        g_error("%s: %s", command, last);
    }
    return answer;
}

char *fake_verbs_ask(FakeVerbs *f, const char *fmt, ...)
{
    g_autofree char *command = NULL;
    va_list ap;

    va_start(ap, fmt);
    command = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return expect_ok(f, command);
}

void fake_verbs_tell(FakeVerbs *f, const char *fmt, ...)
{
    g_autofree char *command = NULL;
    g_autofree char *answer = NULL;
    va_list ap;

    va_start(ap, fmt);
    command = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    answer = expect_ok(f, command);
    g_assert_cmpstr(answer, ==, "");
}

char *fake_verbs_refuses(FakeVerbs *f, const char *command)
{
    g_autofree char *answer = NULL;
    char *last = NULL;

    answer = execute(f, command, &last);
    g_assert_cmpstr(last, !=, "ok");
    return last;
}

unsigned fake_verbs_count(FakeVerbs *f, const char *kind)
{
    g_autofree char *answer = fake_verbs_ask(f, "count");
    g_autofree char *all = g_strdup_printf(" %s", answer);
    g_autofree char *key = g_strdup_printf(" %s=", kind);
    const char *at = strstr(all, key);

    g_assert_nonnull(at);
    return atoi(at + strlen(key));
}

unsigned fake_verbs_count_objects(FakeVerbs *f)
{
    static const char *kinds[] = {
        "mr", "mw", "cq", "srq", "qp", "ah", "mcast",
    };
    unsigned n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        n += fake_verbs_count(f, kinds[i]);
    }
    return n;
}

unsigned fake_verbs_calls(FakeVerbs *f, const char *verb)
{
    g_autofree char *answer = fake_verbs_ask(f, "calls %s", verb);

    return atoi(answer);
}

uint32_t fake_verbs_newest(FakeVerbs *f, const char *kind)
{
    g_autofree char *answer = fake_verbs_ask(f, "objects");
    g_autofree char *key = g_strdup_printf("%s number=", kind);
    g_auto(GStrv) lines = g_strsplit(answer, "\n", -1);
    uint32_t newest = 0;

    /* Lines are in the order of the numbers */
    for (int i = 0; lines[i]; i++) {
        if (g_str_has_prefix(lines[i], key)) {
            newest = g_ascii_strtoull(lines[i] + strlen(key), NULL, 0);
        }
    }
    g_assert_cmpint(newest, !=, 0);
    return newest;
}
