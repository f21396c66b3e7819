/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU with rdma-verbs over the double of libibverbs.
 */
#include "qemu/osdep.h"
#include <sched.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "verbs-test.h"

#define MESSAGE 5000
#define FROM 100
#define TO 20000

Verbs *verbs_host_with(const char *script, const char *memory,
                       const char *options)
{
    g_autofree char *all = g_strdup_printf(VERBS_GIDS "%s", script ?: "");
    Verbs *v = g_new0(Verbs, 1);

    v->fake = fake_verbs_new(all);
    v->host = qrdma_host_start_machine(
        "pc,memory-backend=mem", "-object memory-backend-memfd,id=mem,"
        "size=64M,%s -object rdma-verbs,id=r0,ibdev="
        FAKE_IBVERBS_DEVICE " %s", memory, options);
    fake_verbs_started(v->fake);
    return v;
}

Verbs *verbs_host_memory(const char *script, bool shared)
{
    return verbs_host_with(script, shared ? "share=on" : "share=off", "");
}

Verbs *verbs_host(const char *script)
{
    return verbs_host_memory(script, true);
}

bool verbs_own_network(void)
{
    static bool done;

    if (!done) {
        done = !unshare((geteuid() ? CLONE_NEWUSER : 0) | CLONE_NEWNET);
    }
    if (!done) {
        g_test_skip("no network namespace of its own");
    }
    return done;
}

Verbs *verbs_host_adding(const char *script)
{
    Verbs *v = verbs_host(script);

    qtest_qmp_assert_success(v->host->qts, "{'execute': 'qom-set', "
                             "'arguments': {'path': '/objects/r0', "
                             "'property': 'gid-mode', 'value': 'add'}}");
    return v;
}

Verbs *verbs_new(const char *script)
{
    Verbs *v = verbs_host(script);

    verbs_plug(v);
    return v;
}

void verbs_plug(Verbs *v)
{
    qtest_qmp_device_add(v->host->qts, "virtio-rdma-pci", "rdma0",
                         "{'rdmadev': 'r0', 'addr': '4', 'max-qp': 16, "
                         "'max-cq': 8, 'max-srq': 4, 'max-mw': 8}");
    v->dev = qrdma_open(v->host, QPCI_DEVFN(VERBS_SLOT, 0));
    verbs_restart(v);
}

void verbs_restart(Verbs *v)
{
    qrdma_start(v->dev, 0, 0);
    qrdma_add_event_buffers(v->dev, 32);
    qrdma_setup_gids(v->dev, 1);
}

void verbs_unplug(Verbs *v)
{
    qpci_unplug_acpi_device_test(v->host->qts, "rdma0", VERBS_SLOT);
    qrdma_close(v->dev);
    v->dev = NULL;
}

void verbs_stop(Verbs *v)
{
    qrdma_host_stop(v->host);
    fake_verbs_free(v->fake);
    g_free(v);
}

void verbs_free(Verbs *v)
{
    if (v->dev) {
        verbs_unplug(v);
    }
    verbs_await_clean(v);
    g_assert_cmpint(fake_verbs_count(v->fake, "context"), ==, 0);
    verbs_stop(v);
}

void verbs_refused(Verbs *v, const char *props, const char *text)
{
    verbs_refused_with(v, props, "'addr': '5'", text);
}

void verbs_refused_with(Verbs *v, const char *props, const char *device,
                        const char *text)
{
    g_autofree char *add = g_strdup_printf(
        "{'execute': 'object-add', 'arguments': {'qom-type': 'rdma-verbs', "
        "'id': 'r1'%s%s}}", *props ? ", " : "", props);
    g_autofree char *plug = g_strdup_printf(
        "{'execute': 'device_add', 'arguments': {'driver': "
        "'virtio-rdma-pci', 'id': 'bad', 'rdmadev': 'r1', %s}}", device);

    qtest_qmp_assert_success(v->host->qts, add, NULL);
    qrdma_qmp_refused(v->host->qts, plug, text);
    verbs_await_clean(v);
    g_assert_cmpint(fake_verbs_count(v->fake, "context"), ==, 0);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'object-del', "
                             "'arguments': {'id': 'r1'}}");
}

void verbs_await_count(Verbs *v, const char *kind, unsigned count)
{
    g_autofree char *objects = NULL;
    gint64 end = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;

    while (fake_verbs_count(v->fake, kind) != count) {
        if (g_get_monotonic_time() > end) {
            objects = fake_verbs_ask(v->fake, "objects");
            g_error("%s=%u does not come true:\n%s", kind, count, objects);
        }
        g_usleep(1000);
    }
}

void verbs_await_clean(Verbs *v)
{
    static const char *kinds[] = {
        "mcast", "qp", "srq", "ah", "mw", "mr", "cq", "pd",
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        verbs_await_count(v, kinds[i], 0);
    }
}

VerbsPair verbs_pair(Verbs *v, RdmaQpType type)
{
    QRdma *d = v->dev;
    VerbsPair p = { .v = v, .pd = qrdma_alloc_pd(d) };

    p.cq_a = qrdma_create_cq(d, 64);
    p.cq_b = qrdma_create_cq(d, 64);
    p.a = qrdma_create_qp(p.pd, p.cq_a, p.cq_a, type);
    p.b = qrdma_create_qp(p.pd, p.cq_b, p.cq_b, type);
    p.mr_a = qrdma_reg_mr(p.pd, VERBS_IOVA_A, VERBS_MR_SIZE,
                          VERBS_ACCESS_ALL);
    p.mr_b = qrdma_reg_mr(p.pd, VERBS_IOVA_B, VERBS_MR_SIZE,
                          VERBS_ACCESS_ALL);
    qrdma_bring_up(p.a, p.b, NULL);
    return p;
}

static uint32_t header_of(VerbsPair *p)
{
    return p->a->type == RDMA_QPT_UD ? 40 : 0;
}

static uint32_t length_of(VerbsPair *p)
{
    return p->a->type == RDMA_QPT_UD ? 1000 : MESSAGE;
}

void verbs_post_recv(VerbsPair *p, uint8_t seed)
{
    RdmaSge sge = qrdma_sge(p->mr_b, TO, header_of(p) + length_of(p));
    unsigned calls;

    calls = fake_verbs_calls(p->v->fake, "post_recv");
    qrdma_recv(p->b, seed, &sge);
    qrdma_wait_until(p->v->dev,
                     fake_verbs_calls(p->v->fake, "post_recv") > calls);
}

void verbs_offer_send(VerbsPair *p, uint8_t seed)
{
    RdmaSge sge = qrdma_sge(p->mr_a, FROM, length_of(p));
    RdmaSendWr wr = p->a->type == RDMA_QPT_UD
                    ? qrdma_ud_wr(seed, &sge, p->b, 0)
                    : qrdma_wr(RDMA_WR_SEND, seed, &sge);

    qrdma_mr_fill(p->mr_a, FROM, length_of(p), seed);
    qrdma_post_send(p->a, &wr);
}

void verbs_post_send(VerbsPair *p, uint8_t seed)
{
    unsigned calls = fake_verbs_calls(p->v->fake, "post_send");

    verbs_offer_send(p, seed);
    qrdma_wait_until(p->v->dev,
                     fake_verbs_calls(p->v->fake, "post_send") > calls);
}

void verbs_check_works(VerbsPair *p, uint8_t seed)
{
    verbs_post_recv(p, seed);
    verbs_offer_send(p, seed);
    qrdma_expect(p->cq_a, seed, RDMA_WC_SUCCESS);
    qrdma_expect(p->cq_b, seed, RDMA_WC_SUCCESS);
    qrdma_mr_check(p->mr_b, TO + header_of(p), length_of(p), seed);
}

VerbsWaiting verbs_send_cmd(Verbs *v, uint8_t cmd, const void *req,
                            size_t len, size_t rsp_len)
{
    VerbsWaiting w = { v, qrdma_enqueue(v->dev, cmd, req, len, rsp_len) };

    qrdma_ring_kick(qrdma_ring(v->dev, VIRTIO_RDMA_CTRL_VQ));
    return w;
}

VerbsWaiting verbs_hold_cmd(Verbs *v, const char *verb, uint8_t cmd,
                            const void *req, size_t len, size_t rsp_len)
{
    VerbsWaiting w;

    fake_verbs_tell(v->fake, "delay %s", verb);
    w = verbs_send_cmd(v, cmd, req, len, rsp_len);
    fake_verbs_tell(v->fake, "await %s", verb);
    return w;
}

static gpointer release_soon(gpointer opaque)
{
    FakeVerbs *fake = opaque;

    g_usleep(100 * 1000);
    fake_verbs_tell(fake, "release");
    return NULL;
}

GThread *verbs_release_soon(Verbs *v)
{
    return g_thread_new("release", release_soon, v->fake);
}

uint8_t verbs_release_cmd(const VerbsWaiting *w)
{
    fake_verbs_tell(w->v->fake, "release");
    return verbs_await_status(w);
}

uint8_t verbs_await_status(const VerbsWaiting *w)
{
    qrdma_reap_commands(w->v->dev, 1);
    g_assert_cmpint(qrdma_status_of(&w->cmd), !=, QRDMA_NO_STATUS);
    return qrdma_status_of(&w->cmd);
}

struct virtio_rdma_reg_user_mr_req verbs_reg_mr_req(QRdmaPd *pd)
{
    uint64_t table, *pages;

    qrdma_alloc_pages(pd->dev, 1, &pages, &table);
    return (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .length = cpu_to_le64(4096),
        .pages = cpu_to_le64(qrdma_dma(pd->dev, table)),
        .npages = cpu_to_le32(1),
        .levels = cpu_to_le32(1),
    };
}
