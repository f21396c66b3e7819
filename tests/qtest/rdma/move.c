/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two devices of one QEMU that move to another QEMU together
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "move.h"

static bool is_loading(QTestState *qts)
{
    g_autoptr(QDict) rsp = qtest_qmp_assert_success_ref(
        qts, "{'execute': 'query-status'}");

    return g_str_equal(qdict_get_str(rsp, "status"), "inmigrate");
}

Move move_save(QRdmaHost *host)
{
    Move m = { .dir = g_dir_make_tmp("rdma-move-XXXXXX", NULL) };

    g_assert_nonnull(m.dir);
    m.state = g_strdup_printf("%s/state", m.dir);
    m.uri = g_strdup_printf("file:%s", m.state);
    m.log = g_strdup_printf("%s/log", m.dir);
    qtest_qmp_assert_success(host->qts, "{'execute': 'migrate', "
                             "'arguments': {'uri': %s}}", m.uri);
    g_assert_true(qrdma_migration_done(host->qts));
    return m;
}

void move_end(Move *m)
{
    g_unlink(m->state);
    g_unlink(m->log);
    g_rmdir(m->dir);
    g_free(m->dir);
    g_free(m->state);
    g_free(m->uri);
    g_free(m->log);
}

static QTestState *start_destination(const char *args, const char *more)
{
    return qtest_initf("-machine pc -nodefaults -m 64 %s -S -incoming defer "
                       "%s", args, more);
}

static void load(QTestState *to, const Move *m)
{
    qtest_qmp_assert_success(to, "{'execute': 'migrate-incoming', "
                             "'arguments': {'uri': %s}}", m->uri);
}

void move_host(QRdmaHost *host, const char *args)
{
    move_host_unplugged(host, args, NULL);
}

void move_host_unplugged(QRdmaHost *host, const char *args, const char *netdev)
{
    QTestState *from = host->qts;
    QTestState *to = start_destination(args, "");
    /* The smallest step returns the time. */
    int64_t now = qtest_clock_step(from, 1);
    Move m = move_save(host);

    if (netdev) {
        qtest_qmp_assert_success(to, "{'execute': 'set_link', 'arguments': "
                                 "{'name': %s, 'up': false}}", netdev);
        /* As loadvm does */
        qtest_qmp_assert_success(to, "{'execute': 'system_reset'}");
    }
    load(to, &m);
    while (is_loading(to)) {
        g_usleep(1000);
    }
    qtest_clock_set(to, now);
    host->qts = to;
    host->bus->qts = to;
    qtest_qmp_assert_success(to, "{'execute': 'cont'}");
    qtest_quit(from);
    move_end(&m);
}

void move_expect_refused(const Move *m, const char *args, const char *text)
{
    g_autofree char *redirect = g_strdup_printf("2> %s", m->log);
    g_autofree char *said = NULL;
    QTestState *to = start_destination(args, redirect);

    qtest_set_expected_status(to, 1);
    load(to, m);
    qtest_wait_qemu(to);
    qtest_quit(to);
    g_assert_true(g_file_get_contents(m->log, &said, NULL, NULL));
    if (!strstr(said, text)) {
        g_test_message("%s", said);
        g_assert_not_reached();
    }
}

static void spoil(const Move *m, const char *data, size_t size,
                  const MoveSpoilt *c)
{
    g_autofree char *copy = g_memdup2(data, size);
    uint32_t find[ARRAY_SIZE(c->find)], by = cpu_to_be32(c->by);
    char *at;

    for (unsigned i = 0; i < c->words; i++) {
        find[i] = cpu_to_be32(c->find[i]);
    }
    at = memmem(copy, size, find, c->words * sizeof(find[0]));
    g_assert_nonnull(at);
    memcpy(at + c->word * sizeof(by), &by, sizeof(by));
    g_assert_true(g_file_set_contents(m->state, copy, size, NULL));
}

void move_refuse_spoilt(QRdmaHost *host, const char *args,
                        const MoveSpoilt *cases, unsigned n)
{
    Move m = move_save(host);
    g_autofree char *data = NULL;
    size_t size;

    g_assert_true(g_file_get_contents(m.state, &data, &size, NULL));
    for (unsigned i = 0; i < n; i++) {
        g_test_message("word %u becomes %u", cases[i].word, cases[i].by);
        spoil(&m, data, size, &cases[i]);
        move_expect_refused(&m, args, cases[i].text);
    }
    move_end(&m);
}
