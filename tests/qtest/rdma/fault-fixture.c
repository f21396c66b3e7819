/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of virtio-rdma devices, for tests.
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "fault-test.h"

/* The name by the slot, because the only device of a machine may have no ID */
static const char *name_of(QRdma *d)
{
    return d->pci->pdev->devfn == QPCI_DEVFN(5, 0) ? "d1" : "d0";
}

static QDict *call(QRdma *d, const char *command, const char *args)
{
    g_autofree char *cmd = g_strdup_printf(
        "{'execute': '%s', 'arguments': {'device': '%s'%s%s}}", command,
        name_of(d), *args ? ", " : "", args);

    return qtest_qmp(d->host->qts, cmd, NULL);
}

static void expect_success(QDict *rsp)
{
    if (!qdict_haskey(rsp, "return")) {
        g_error("%s", qdict_get_str(qdict_get_qdict(rsp, "error"), "desc"));
    }
    qobject_unref(rsp);
}

void fault_add(QRdma *d, const char *fmt, ...)
{
    g_autofree char *args = NULL;
    va_list ap;

    va_start(ap, fmt);
    args = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    expect_success(call(d, "rdma-fault-add", args));
}

void fault_refused(QRdma *d, const char *args, const char *word)
{
    g_autoptr(QDict) rsp = call(d, "rdma-fault-add", args);
    const char *desc = qdict_get_str(qdict_get_qdict(rsp, "error"), "desc");

    if (!strstr(desc, word)) {
        g_error("{%s}: no '%s' in '%s'", args, word, desc);
    }
}

void fault_remove(QRdma *d, const char *id)
{
    g_autofree char *args = g_strdup_printf("'id': '%s'", id);

    expect_success(call(d, "rdma-fault-remove", args));
}

void fault_remove_all(QRdma *d)
{
    expect_success(call(d, "rdma-fault-remove", ""));
}

unsigned fault_count(QRdma *d)
{
    g_autoptr(QDict) rsp = call(d, "query-rdma-faults", "");

    return qlist_size(qdict_get_qlist(rsp, "return"));
}

QDict *fault_query(QRdma *d, const char *id)
{
    QDict *rsp = call(d, "query-rdma-faults", "");
    const QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(rsp, "return"), e) {
        QDict *info = qobject_to(QDict, qlist_entry_obj(e));

        if (!strcmp(qdict_get_str(qdict_get_qdict(info, "fault"), "id"),
                    id)) {
            qobject_ref(info);
            qobject_unref(rsp);
            return info;
        }
    }
    g_error("there is no fault %s", id);
}

static uint64_t get_uint(QRdma *d, const char *id, const char *key)
{
    g_autoptr(QDict) info = fault_query(d, id);

    return qnum_get_uint(qobject_to(QNum, qdict_get(info, key)));
}

uint64_t fault_matches(QRdma *d, const char *id)
{
    return get_uint(d, id, "matches");
}

uint64_t fault_hits(QRdma *d, const char *id)
{
    return get_uint(d, id, "hits");
}

void fault_expect(QRdma *d, const char *id, uint64_t matches, uint64_t hits,
                  bool active)
{
    g_autoptr(QDict) info = fault_query(d, id);

    g_assert_cmpuint(qdict_get_int(info, "matches"), ==, matches);
    g_assert_cmpuint(qdict_get_int(info, "hits"), ==, hits);
    g_assert_true(qdict_get_bool(info, "active") == active);
}
