/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk image for snapshots
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "image.h"

#define IMAGE_SIZE (256 << 20)

static void run_job(QTestState *qts, const char *options)
{
    g_autofree char *command = g_strdup_printf(
        "{'execute': 'blockdev-create', 'arguments': "
        "{'job-id': 'j', 'options': %s}}", options);
    bool done = false;

    qtest_qmp_assert_success(qts, command, NULL);
    while (!done) {
        g_autoptr(QDict) rsp = qtest_qmp(qts, "{'execute': 'query-jobs'}");
        QList *jobs = qdict_get_qlist(rsp, "return");
        QDict *job = qobject_to(QDict, qlist_peek(jobs));

        done = g_str_equal(qdict_get_str(job, "status"), "concluded");
        g_assert_null(qdict_get_try_str(job, "error"));
    }
    qtest_qmp_assert_success(qts, "{'execute': 'job-dismiss', 'arguments': "
                             "{'id': 'j'}}");
}

void test_image_add(QTestState *qts, const char *path)
{
    g_autofree char *create = g_strdup_printf(
        "{'driver': 'file', 'filename': '%s', 'size': 0}", path);
    g_autofree char *format = g_strdup_printf(
        "{'driver': 'qcow2', 'file': 'file0', 'size': %d}", IMAGE_SIZE);

    run_job(qts, create);
    qtest_qmp_assert_success(qts, "{'execute': 'blockdev-add', 'arguments': "
        "{'driver': 'file', 'node-name': 'file0', 'filename': %s, "
        "'cache': {'no-flush': true}}}", path);
    run_job(qts, format);
    qtest_qmp_assert_success(qts, "{'execute': 'blockdev-add', 'arguments': "
        "{'driver': 'qcow2', 'node-name': 'disk0', 'file': 'file0', "
        "'cache': {'no-flush': true}}}");
}
