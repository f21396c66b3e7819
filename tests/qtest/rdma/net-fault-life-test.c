/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of virtio-rdma devices: arguments that are refused, faults of
 * commands, and resets, unplugging, stopped machines and iothreads with faults.
 */
#include "qemu/osdep.h"
#include "qobject/qstring.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "libqos/pci-pc.h"
#include "fault-test.h"
#include "standard-headers/linux/pci_regs.h"


static NetPair pair_without_faults(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);

    fault_remove_all(p.a.dev);
    return p;
}

static void post_write(NetPair *p, uint64_t wr_id)
{
    RdmaSge sge = net_sge(&p->a, 0, 64);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge, p->b.mr, 0);

    qrdma_post_send(p->a.qp, &wr);
}

/* The error names what is wrong, and no fault is added. */
static void test_refusals(NetKind kind)
{
    static const struct {
        const char *args;
        const char *word;
    } bad[] = {
        { "'id': 'f'", "kind" },
        { "'id': 'f', 'kind': 'nosuch'", "nosuch" },
        { "'kind': 'qp-fatal'", "id" },
        { "'id': '', 'kind': 'qp-fatal'", "id=\"\"" },
        { "'id': '0f', 'kind': 'qp-fatal'", "the first is a letter" },
        { "'id': 'f f', 'kind': 'qp-fatal'", "id=\"f f\"" },
        { "'id': 'there', 'kind': 'qp-fatal'", "'there'" },
        { "'id': 'f2345678901234567890123456789012345678901234567890"
          "12345678901234', 'kind': 'qp-fatal'", "63" },
        { "'id': 'f', 'kind': 'completion-error'", "status" },
        { "'id': 'f', 'kind': 'completion-error', 'status': 'success'",
          "error" },
        { "'id': 'f', 'kind': 'qp-fatal', 'status': 'fatal-err'", "status" },
        { "'id': 'f', 'kind': 'qp-fatal', 'opcode': 'recv'", "opcode=recv" },
        { "'id': 'f', 'kind': 'qp-stuck', 'opcode': 'recv'", "qp-stuck" },
        { "'id': 'f', 'kind': 'remote-access', 'opcode': 'send'",
          "opcode=send" },
        { "'id': 'f', 'kind': 'local-access', 'opcode': 'reg-mr'",
          "opcode=reg-mr" },
        { "'id': 'f', 'kind': 'completion-error', 'status': 'fatal-err', "
          "'opcode': 'recv-rdma-with-imm'", "recv-rdma-with-imm" },
        /* max-qp=8 */
        { "'id': 'f', 'kind': 'qp-fatal', 'qpn': 8", "qpn=8" },
        { "'id': 'f', 'kind': 'qp-fatal', 'dest-qpn': 16777216", "24 bits" },
        { "'id': 'f', 'kind': 'qp-fatal', 'dgid': '10.0.0'", "10.0.0" },
        { "'id': 'f', 'kind': 'qp-fatal', 'probability': 0", "probability" },
        { "'id': 'f', 'kind': 'qp-fatal', 'probability': 1.5", "1.5" },
        { "'id': 'f', 'kind': 'qp-fatal', 'probability': -1", "-1" },
        { "'id': 'f', 'kind': 'qp-stuck', 'duration': 0", "leave it out" },
        { "'id': 'f', 'kind': 'qp-stuck', 'duration': 3600001", "3600000" },
        { "'id': 'f', 'kind': 'completion-delay'", "delay" },
        { "'id': 'f', 'kind': 'completion-delay', 'delay': 0", "delay=0" },
        { "'id': 'f', 'kind': 'completion-reorder', 'delay': 600001",
          "600000" },
        { "'id': 'f', 'kind': 'command-delay', 'delay': 600001", "600000" },
        { "'id': 'f', 'kind': 'command-error', 'command': 'nosuch', "
          "'status': 'err'", "nosuch" },
        { "'id': 'f', 'kind': 'command-error', 'status': 'ok'", "ok" },
        { "'id': 'f', 'kind': 'command-error', 'status': 'err', 'qpn': 2",
          "qpn needs command" },
        { "'id': 'f', 'kind': 'command-error', 'status': 'err', 'qpn': 2, "
          "'command': 'create-cq'", "qpn needs command" },
        { "'id': 'f', 'kind': 'port-down', 'qpn': 2", "qpn" },
    };
    NetPair p = pair_without_faults(kind);
    QTestState *qts = p.a.dev->host->qts;

    fault_add(p.a.dev, "'id': 'there', 'kind': 'qp-fatal', 'after': 1000");
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        fault_refused(p.a.dev, bad[i].args, bad[i].word);
    }
    g_assert_cmpuint(fault_count(p.a.dev), ==, 1);
    fault_remove(p.a.dev, "there");
    for (int i = 0; i < 64; i++) {
        fault_add(p.a.dev, "'id': 'f%d', 'kind': 'qp-fatal', 'after': 1000",
                  i);
    }
    fault_refused(p.a.dev, "'id': 'f64', 'kind': 'qp-fatal'", "64");
    fault_remove_all(p.a.dev);
    g_assert_cmpuint(fault_count(p.a.dev), ==, 0);
    qrdma_qmp_refused(qts, "{'execute': 'rdma-fault-remove', "
                      "'arguments': {'device': 'd0', 'id': 'f'}}", "'f'");
    qrdma_qmp_refused(qts, "{'execute': 'rdma-fault-remove', "
                      "'arguments': {'device': 'nosuch'}}", "nosuch");
    qrdma_qmp_refused(qts, "{'execute': 'query-rdma-faults', "
                      "'arguments': {'device': 'nosuch'}}", "nosuch");
    post_write(&p, 1);
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
}

/* The query returns the arguments, with defaults. */
static void test_query(NetKind kind)
{
    NetPair p = pair_without_faults(kind);
    g_autofree char *text = NULL;
    QDict *info, *f;

    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-error', "
              "'status': 'rem-op-err', 'opcode': 'atomic-write', "
              "'dgid': '10.0.0.7', 'dest-qpn': 5, 'probability': 0.25");
    info = fault_query(p.a.dev, "f");
    f = qdict_get_qdict(info, "fault");
    g_assert_cmpstr(qdict_get_str(f, "device"), ==, "d0");
    g_assert_cmpstr(qdict_get_str(f, "kind"), ==, "completion-error");
    g_assert_cmpstr(qdict_get_str(f, "status"), ==, "rem-op-err");
    g_assert_cmpstr(qdict_get_str(f, "opcode"), ==, "atomic-write");
    g_assert_cmpstr(qdict_get_str(f, "dgid"), ==, "::ffff:10.0.0.7");
    g_assert_cmpint(qdict_get_int(f, "dest-qpn"), ==, 5);
    g_assert_cmpint(qdict_get_int(f, "after"), ==, 0);
    g_assert_cmpint(qdict_get_int(f, "times"), ==, 1);
    g_assert_cmpint(qdict_get_int(f, "seed"), ==, 1);
    g_assert_cmpfloat(qdict_get_double(f, "probability"), ==, 0.25);
    g_assert_false(qdict_haskey(f, "qpn"));
    qobject_unref(info);
    fault_add(p.a.dev, "'id': 'c', 'kind': 'command-delay', 'delay': 7, "
              "'command': 'set-shadow'");
    info = fault_query(p.a.dev, "c");
    f = qdict_get_qdict(info, "fault");
    g_assert_cmpstr(qdict_get_str(f, "command"), ==, "set-shadow");
    g_assert_cmpint(qdict_get_int(f, "delay"), ==, 7);
    qobject_unref(info);
    text = qtest_hmp(p.a.dev->host->qts, "info rdma d0");
    g_assert_nonnull(strstr(text, "fault f: completion-error, matches 0, "
                            "hits 0\r\n"));
    fault_remove_all(p.a.dev);
}

/* Commands */

static void test_command_error(NetKind kind)
{
    static const struct {
        const char *name;
        uint8_t status;
    } all[] = {
        { "err", VIRTIO_RDMA_S_ERR }, { "inval", VIRTIO_RDMA_S_INVAL },
        { "nomem", VIRTIO_RDMA_S_NOMEM }, { "busy", VIRTIO_RDMA_S_BUSY },
        { "noent", VIRTIO_RDMA_S_NOENT }, { "perm", VIRTIO_RDMA_S_PERM },
        { "notsupp", VIRTIO_RDMA_S_NOTSUPP },
    };
    NetPair p = pair_without_faults(kind);
    uint32_t pdn;
    RdmaQpAttr attr;

    for (int i = 0; i < ARRAY_SIZE(all); i++) {
        fault_add(p.a.dev, "'id': 'f%d', 'kind': 'command-error', "
                  "'command': 'create-pd', 'status': '%s'", i, all[i].name);
        /* Another command */
        assert_ok(qrdma_query_qp(p.a.qp, &attr));
        g_assert_cmpint(qrdma_try_alloc_pd(p.a.dev, &pdn), ==,
                        all[i].status);
    }
    assert_ok(qrdma_try_alloc_pd(p.a.dev, &pdn));
    /*
     * The failed command has no effect, and the fault is of this queue pair
     * only.
     */
    fault_add(p.a.dev, "'id': 'qp', 'kind': 'command-error', "
              "'command': 'modify-qp', 'qpn': %u, 'status': 'inval'",
              p.a.qp->qpn);
    if (p.b.dev->host == p.a.dev->host) {
        assert_ok(qrdma_modify_qp_state(p.b.qp, RDMA_QPS_RESET));
    }
    assert_status(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_ERR), INVAL);
    g_assert_cmpint(qrdma_qp_state(p.a.qp), ==, RDMA_QPS_RTS);
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_ERR));
}

/* Give QUERY_PKEY without waiting. */
static QRdmaWaiting enqueue(QRdma *d)
{
    struct virtio_rdma_query_pkey_req req = { .port = cpu_to_le32(1) };
    QRdmaWaiting w = qrdma_enqueue(d, VIRTIO_RDMA_CMD_QUERY_PKEY, &req,
                                   sizeof(req),
                                   sizeof(struct virtio_rdma_query_pkey_rsp));

    qrdma_ring_kick(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
    return w;
}

static void delay_commands(NetPair *p)
{
    fault_add(p->a.dev, "'id': 'f', 'kind': 'command-delay', "
              "'command': 'query-pkey', 'delay': 500");
}

static void test_command_delay(NetKind kind)
{
    NetPair p = pair_without_faults(kind);
    QRdma *d = p.a.dev;
    QRdmaWaiting first, next;

    delay_commands(&p);
    first = enqueue(d);
    next = enqueue(d);
    net_clock_step(p.net, 499 * QRDMA_MS);
    qrdma_settle(d);
    g_assert_cmphex(qrdma_status_of(&first), ==, QRDMA_NO_STATUS);
    /* Work goes on. */
    post_write(&p, 1);
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    net_clock_step(p.net, QRDMA_MS);
    qrdma_reap_commands(d, 2);
    assert_ok(qrdma_status_of(&first));
    assert_ok(qrdma_status_of(&next));
    fault_expect(d, "f", 1, 1, false);
}

static void test_removal_ends_command_delay(NetKind kind)
{
    NetPair p = pair_without_faults(kind);
    QRdma *d = p.a.dev;
    QRdmaWaiting w;

    delay_commands(&p);
    fault_add(d, "'id': 's', 'kind': 'qp-stuck', 'after': 1000");
    w = enqueue(d);
    qrdma_wait_until(d, fault_hits(d, "f") == 1);
    fault_remove(d, "f");
    qrdma_settle(d);
    g_assert_cmphex(qrdma_status_of(&w), ==, QRDMA_NO_STATUS);
    fault_remove(d, "s");
    qrdma_wait_until(d, qrdma_status_of(&w) != QRDMA_NO_STATUS);
    assert_ok(qrdma_status_of(&w));
}

/* ms that the process has run, in user space and in the kernel */
static long cpu_ms(QTestState *qts)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat",
                                            (int)qtest_pid(qts));
    g_autofree char *text = NULL;
    unsigned long user, sys;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpint(sscanf(strrchr(text, ')') + 1, " %*s %*s %*s %*s %*s %*s "
                           "%*s %*s %*s %*s %*s %lu %lu", &user, &sys), ==, 2);
    return (user + sys) * 1000 / sysconf(_SC_CLK_TCK);
}

/* A delayed command is due, but waits until the device may be bus master. */
static void test_command_delay_without_bus_master(NetKind kind)
{
    NetPair p = pair_without_faults(kind);
    QRdma *d = p.a.dev;
    QPCIDevice *pdev = d->pci->pdev;
    uint16_t cmd = qpci_config_readw(pdev, PCI_COMMAND);
    uint8_t status = qrdma_device_status(d);
    QRdmaWaiting w;
    long before;

    delay_commands(&p);
    w = enqueue(d);
    qrdma_wait_until(d, fault_hits(d, "f") == 1);
    qpci_config_writew(pdev, PCI_COMMAND, cmd & ~PCI_COMMAND_MASTER);
    net_clock_step(p.net, 500 * QRDMA_MS);
    fault_remove(d, "f");
    /*
     * The main loop must sleep. A bottom half that retries would keep it awake.
     */
    before = cpu_ms(d->host->qts);
    g_usleep(500 * 1000);
    g_assert_cmpint(cpu_ms(d->host->qts) - before, <, 100);
    g_assert_cmphex(qrdma_status_of(&w), ==, QRDMA_NO_STATUS);
    qpci_config_writew(pdev, PCI_COMMAND, cmd);
    d->pci->vdev.bus->set_status(&d->pci->vdev, status);
    qrdma_wait_until(d, qrdma_status_of(&w) != QRDMA_NO_STATUS);
    assert_ok(qrdma_status_of(&w));
}

/* Resets and other changes of the device */

static void expect_works(NetPair *p)
{
    *p = net_pair_new(p->net, RDMA_QPT_RC);
    qrdma_connect(p->a.qp, p->b.qp, NULL);
    post_write(p, 1);
    qrdma_expect(p->a.scq, 1, RDMA_WC_SUCCESS);
}

static void hold(NetPair *p)
{
    fault_add(p->a.dev, "'id': 'd', 'kind': 'completion-delay', "
              "'delay': 600000");
    post_write(p, 1);
    qrdma_wait_until(p->a.dev, fault_hits(p->a.dev, "d") == 1);
    fault_add(p->a.dev, "'id': 's', 'kind': 'qp-stuck'");
    post_write(p, 2);
    qrdma_wait_until(p->a.dev, fault_hits(p->a.dev, "s") == 1);
}

/* The faults stay, but their effects end. */
static void test_reset(NetKind kind)
{
    NetPair p = pair_without_faults(kind);

    hold(&p);
    delay_commands(&p);
    enqueue(p.a.dev);
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "f") == 1);
    fault_add(p.a.dev, "'id': 'later', 'kind': 'qp-fatal', 'after': 1");
    expect_works(&p);
    fault_expect(p.a.dev, "d", 1, 1, false);
    fault_expect(p.a.dev, "s", 1, 1, false);
    fault_expect(p.a.dev, "f", 1, 1, false);
    fault_expect(p.a.dev, "later", 1, 0, true);
    net_clock_step(p.net, 600000 * QRDMA_MS);
    qrdma_expect_none(p.a.scq);
    post_write(&p, 2);
    qrdma_expect(p.a.scq, 2, RDMA_WC_WR_FLUSH_ERR);
}

/* Virtual time stands still, so delayed completions wait. */
static void test_stopped_machine(NetKind kind)
{
    NetPair p = pair_without_faults(kind);
    QTestState *qts = p.a.dev->host->qts;

    fault_add(p.a.dev, "'id': 'd', 'kind': 'completion-delay', "
              "'delay': 100");
    post_write(&p, 1);
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "d") == 1);
    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    fault_add(p.a.dev, "'id': 's', 'kind': 'qp-stuck'");
    fault_remove(p.a.dev, "s");
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qrdma_expect_none(p.a.scq);
    net_clock_step(p.net, 100 * QRDMA_MS);
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
}

static bool faults_block_migration(QRdma *d)
{
    QDict *rsp = qtest_qmp_assert_success_ref(
        d->host->qts, "{'execute': 'query-migrate'}");
    const QListEntry *e;
    bool found = false;

    if (qdict_haskey(rsp, "blocked-reasons")) {
        QLIST_FOREACH_ENTRY(qdict_get_qlist(rsp, "blocked-reasons"), e) {
            const QString *text = qobject_to(QString, qlist_entry_obj(e));

            found |= strstr(qstring_get_str(text), "has faults") != NULL;
        }
    }
    qobject_unref(rsp);
    return found;
}

/* Migration would lose faults and the completions that they hold back. */
static void test_migration_is_blocked(NetKind kind)
{
    NetPair p = pair_without_faults(kind);
    QTestState *qts = p.a.dev->host->qts;

    g_assert_false(faults_block_migration(p.a.dev));
    fault_add(p.a.dev, "'id': 'd', 'kind': 'completion-delay', "
              "'delay': 100");
    g_assert_true(faults_block_migration(p.a.dev));
    post_write(&p, 1);
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "d") == 1);
    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    fault_remove(p.a.dev, "d");
    g_assert_true(faults_block_migration(p.a.dev));
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    g_assert_false(faults_block_migration(p.a.dev));
}

/* Completions are held back for as long as there is a fault. */
static void test_removal_releases_completions(NetKind kind)
{
    NetPair p = pair_without_faults(kind);

    fault_add(p.a.dev, "'id': 'd', 'kind': 'completion-delay', "
              "'delay': 600000, 'times': 0");
    fault_add(p.a.dev, "'id': 's', 'kind': 'qp-stuck', 'after': 1000");
    for (int i = 0; i < 3; i++) {
        post_write(&p, i);
    }
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "d") == 3);
    fault_remove(p.a.dev, "d");
    qrdma_expect_none(p.a.scq);
    fault_remove(p.a.dev, "s");
    qrdma_expect_many(p.a.scq, 0, 3, RDMA_WC_SUCCESS);
}

static void test_unplug(NetKind kind)
{
    Net *net = net_new(kind, "");
    NetPair p = net_pair_new(net, RDMA_QPT_RC);
    QTestState *qts = p.a.dev->host->qts;

    qrdma_connect(p.a.qp, p.b.qp, NULL);
    hold(&p);
    delay_commands(&p);
    enqueue(p.a.dev);
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "f") == 1);
    if (!qrdma_ibdev()) {
        fault_add(p.a.dev, "'id': 'p', 'kind': 'port-down'");
    }
    qpci_unplug_acpi_device_test(qts, "d0", 4);
    qtest_qmp_assert_failure_ref(qts, "{'execute': 'query-rdma-faults', "
        "'arguments': {'device': 'd0'}}");
    net_clock_step(net, 600000 * QRDMA_MS);
    qtest_qmp_assert_success(qts, "{'execute': 'query-status'}");
    net_free(net);
}

/* A backend that outlives its device gets its port back. */
static void test_port_of_the_next_device(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "-object rdma-roce,id=r0,netdev=n0 "
        "-device virtio-rdma-pci,id=d0,rdmadev=r0,addr=4");
    g_autofree char *text = NULL;

    qtest_qmp_assert_success(host->qts, "{'execute': 'rdma-fault-add', "
        "'arguments': {'device': 'd0', 'id': 'f', 'kind': 'port-down'}}");
    text = qtest_hmp(host->qts, "info rdma");
    g_assert_nonnull(strstr(text, "port: down"));
    g_free(text);
    qpci_unplug_acpi_device_test(host->qts, "d0", 4);
    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "d0",
                         "{'rdmadev': 'r0', 'addr': '4'}");
    text = qtest_hmp(host->qts, "info rdma");
    g_assert_nonnull(strstr(text, "port: active"));
}

static void test_iothread(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-object iothread,id=io0 -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,id=d0,netdev=n0,iothread=io0,addr=4,"
        "max-qp=8");
    QRdma *d = qrdma_open(host, QPCI_DEVFN(4, 0));
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL);
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp;

    d->direct = true;
    qrdma_start(d, 0, 0);
    qrdma_setup_gids(d, 1);
    pd = qrdma_alloc_pd(d);
    cq = qrdma_create_cq(d, 64);
    qp = qrdma_create_loop(pd, cq, cq);
    fault_add(d, "'id': 'd', 'kind': 'completion-delay', 'delay': 100");
    fault_add(d, "'id': 's', 'kind': 'qp-stuck', 'duration': 100, "
              "'after': 1");
    fault_add(d, "'id': 'f', 'kind': 'qp-fatal', 'after': 1");
    qrdma_post_send(qp, &wr);
    qrdma_wait_until(d, fault_hits(d, "d") == 1);
    qrdma_expect_none(cq);
    qrdma_clock_step(d, 100 * QRDMA_MS);
    qrdma_expect(cq, 1, RDMA_WC_SUCCESS);
    qrdma_post_send(qp, &wr);
    qrdma_wait_until(d, fault_hits(d, "s") == 1);
    qrdma_expect_none(cq);
    qrdma_clock_step(d, 100 * QRDMA_MS);
    qrdma_expect(cq, 1, RDMA_WC_SUCCESS);
    qrdma_post_expect(qp, wr, RDMA_WC_WR_FLUSH_ERR);
    fault_expect(d, "f", 2, 1, false);
}

const NetTest net_fault_life_tests[] = {
    { "fault/refusals", test_refusals },
    { "fault/query", test_query },
    { "fault/command-error", test_command_error },
    { "fault/command-delay", test_command_delay },
    { "fault/removal-ends-command-delay", test_removal_ends_command_delay },
    { "fault/command-delay-without-bus-master",
      test_command_delay_without_bus_master },
    { "fault/reset", test_reset },
    { "fault/stopped-machine", test_stopped_machine },
    { "fault/migration-is-blocked", test_migration_is_blocked },
    { "fault/removal-releases-completions",
      test_removal_releases_completions },
    { "fault/unplug", test_unplug, NET_TWO_HOSTS },
    {}
};

const QRdmaTest net_fault_alone_tests[] = {
    { "port-of-the-next-device", test_port_of_the_next_device },
    { "iothread", test_iothread },
    {}
};
