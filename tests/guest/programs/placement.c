/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma_placement -d DEVICE -g GID-INDEX [CLIENT-OPTIONS] [SERVER]
 *
 * FLUSH and ATOMIC WRITE between two devices, by libibverbs' extended API. The
 * server (without SERVER) checks its memory when the client reports that a
 * request has completed. The program needs a libibverbs with ibv_wr_flush().
 */
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <infiniband/verbs.h>

#define PORT "18515"
#define SIZE (64 * 1024)
#define DEPTH 64
#define RD_ATOMIC 8
#define ROUNDS 300
#define WORD 32768                  /* offset of the target of ATOMIC WRITEs */
#define TIMEOUT 20                  /* seconds */

/* Questions of the client to the server */
enum what { PATTERN, VALUE, END };

struct question {
    uint32_t what;
    uint32_t len;
    uint64_t value;
};

struct address {
    union ibv_gid gid;
    uint64_t base;
    uint32_t rkey;
    uint32_t qpn;
    uint32_t psn;
    uint32_t mtu;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_qp_ex *qpx;
static struct ibv_mr *mr;
static uint8_t *memory;
static struct address mine, theirs;
static int gid_index, peer = -1;

__attribute__((format(printf, 1, 2), noreturn))
static void fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    exit(1);
}

static void check(int ret, const char *what)
{
    if (ret) {
        fail("%s: %s", what, strerror(ret));
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static uint8_t pattern(uint32_t i, uint64_t seed)
{
    return (i * 7 + seed) ^ (i >> 8);
}

/* The other end */

static void tell(const void *data, size_t size)
{
    if (send(peer, data, size, MSG_NOSIGNAL) != (ssize_t)size) {
        fail("lost the peer");
    }
}

static void hear(void *data, size_t size)
{
    if (recv(peer, data, size, MSG_WAITALL) != (ssize_t)size) {
        fail("lost the peer");
    }
}

static void connect_peer(const char *host)
{
    struct addrinfo hints = {
        .ai_family = host ? AF_UNSPEC : AF_INET6,
        .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE,
    }, *info;
    int fd, one = 1, tries;

    if (getaddrinfo(host, PORT, &hints, &info)) {
        fail("cannot resolve %s", host);
    }
    fd = socket(info->ai_family, SOCK_STREAM, 0);
    if (host) {
        for (tries = 0; connect(fd, info->ai_addr, info->ai_addrlen);
             tries++) {
            if (tries == 50) {
                fail("connect to %s: %s", host, strerror(errno));
            }
            close(fd);
            usleep(100000);
            fd = socket(info->ai_family, SOCK_STREAM, 0);
        }
        peer = fd;
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, 1)) {
            fail("port " PORT ": %s", strerror(errno));
        }
        peer = accept(fd, NULL, NULL);
        close(fd);
    }
    freeaddrinfo(info);
}

/* Set-up */

static void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_device_attr_ex attr;
    const uint64_t caps = IB_UVERBS_DEVICE_FLUSH_GLOBAL |
                          IB_UVERBS_DEVICE_ATOMIC_WRITE;
    int i;

    for (i = 0; list && list[i]; i++) {
        if (!strcmp(name, ibv_get_device_name(list[i]))) {
            context = ibv_open_device(list[i]);
        }
    }
    if (!context) {
        fail("cannot open %s", name);
    }
    check(ibv_query_device_ex(context, NULL, &attr), "query_device_ex");
    if ((attr.device_cap_flags_ex & caps) != caps) {
        fail("%s has no FLUSH or no ATOMIC WRITE: 0x%llx", name,
             (unsigned long long)attr.device_cap_flags_ex);
    }
}

/* This device makes nothing persistent, so it must refuse such a region. */
static void check_persistence(void)
{
    struct ibv_device_attr_ex attr;
    struct ibv_mr *bad;

    check(ibv_query_device_ex(context, NULL, &attr), "query_device_ex");
    if (attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_PERSISTENT) {
        return;
    }
    bad = ibv_reg_mr(pd, memory, SIZE,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_FLUSH_PERSISTENT);
    if (bad) {
        fail("a region could be registered for persistence");
    }
}

static void make_qp(void)
{
    struct ibv_port_attr port;
    struct ibv_qp_init_attr_ex init = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
                 .max_recv_sge = 1 },
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_FLUSH |
                          IBV_QP_EX_WITH_ATOMIC_WRITE,
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_FLUSH_GLOBAL,
    };

    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
    if (!pd || !cq || posix_memalign((void **)&memory, 4096, SIZE)) {
        fail("no PD, no CQ or no memory");
    }
    memset(memory, 0, SIZE);
    mr = ibv_reg_mr(pd, memory, SIZE,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_FLUSH_GLOBAL);
    if (!mr) {
        fail("ibv_reg_mr: %s", strerror(errno));
    }
    check_persistence();
    init.pd = pd;
    init.send_cq = init.recv_cq = cq;
    qp = ibv_create_qp_ex(context, &init);
    if (!qp) {
        fail("ibv_create_qp_ex: %s", strerror(errno));
    }
    qpx = ibv_qp_to_qp_ex(qp);
    if (!qpx) {
        fail("the queue pair is not an extended one");
    }
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                        IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    if (ibv_query_port(context, 1, &port) ||
        ibv_query_gid(context, 1, gid_index, &mine.gid)) {
        fail("no port, or no GID %d", gid_index);
    }
    mine.mtu = port.active_mtu;
    mine.base = (uintptr_t)memory;
    mine.rkey = mr->rkey;
    mine.qpn = qp->qp_num;
    mine.psn = 0xfffff8;            /* wraps soon */
}

static void connect_qp(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mine.mtu < theirs.mtu ? mine.mtu : theirs.mtu,
        .dest_qp_num = theirs.qpn, .rq_psn = theirs.psn,
        .max_dest_rd_atomic = RD_ATOMIC, .min_rnr_timer = 1,
        .ah_attr = {
            .is_global = 1, .port_num = 1,
            .grh = { .dgid = theirs.gid, .sgid_index = gid_index,
                     .hop_limit = 64 },
        },
    };

    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
                        IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC |
                        IBV_QP_MIN_RNR_TIMER), "RTR");
    attr = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTS, .sq_psn = mine.psn, .timeout = 17,
        .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = RD_ATOMIC,
    };
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* The client */

static void begin(uint64_t wr_id, bool signalled)
{
    ibv_wr_start(qpx);
    qpx->wr_id = wr_id;
    qpx->wr_flags = signalled ? IBV_SEND_SIGNALED : 0;
}

static void end(void)
{
    check(ibv_wr_complete(qpx), "ibv_wr_complete");
}

static struct ibv_wc next_wc(void)
{
    double until = now() + TIMEOUT;
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(cq, 1, &wc))) {
        if (now() > until) {
            fail("no completion in %d s", TIMEOUT);
        }
    }
    if (n < 0) {
        fail("ibv_poll_cq failed");
    }
    return wc;
}

static void expect(uint64_t wr_id, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = next_wc();

    if (wc.status != IBV_WC_SUCCESS || wc.wr_id != wr_id ||
        wc.opcode != opcode) {
        fail("request %llu of opcode %d ended as %llu: %s, opcode %d",
             (unsigned long long)wr_id, opcode,
             (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
             wc.opcode);
    }
}

static void ask(enum what what, uint32_t len, uint64_t value)
{
    struct question q = { .what = what, .len = len, .value = value };
    uint32_t good;

    tell(&q, sizeof(q));
    hear(&good, sizeof(good));
    if (!good) {
        fail("the server does not see what was placed");
    }
}

static void flush_writes(uint32_t len, uint64_t seed, uint8_t level)
{
    uint32_t i;

    for (i = 0; i < len; i++) {
        memory[i] = pattern(i, seed);
    }
    begin(1, false);
    ibv_wr_rdma_write(qpx, theirs.rkey, theirs.base);
    ibv_wr_set_sge(qpx, mr->lkey, (uintptr_t)memory, len);
    end();
    begin(2, true);
    ibv_wr_flush(qpx, theirs.rkey, level == IBV_FLUSH_MR ? 0 : theirs.base,
                 level == IBV_FLUSH_MR ? 0 : len, IBV_FLUSH_GLOBAL, level);
    end();
    expect(2, IBV_WC_FLUSH);
    ask(PATTERN, len, seed);
}

static void atomic_write(uint64_t value, uint64_t wr_id, bool signalled)
{
    begin(wr_id, signalled);
    ibv_wr_atomic_write(qpx, theirs.rkey, theirs.base + WORD, &value);
    end();
}

/* Many of both in flight, and a READ that returns the last value */
static void stream(void)
{
    uint64_t i, value = 0;

    for (i = 0; i < ROUNDS; i++) {
        value = 0x0102030405060708 * (i + 1);
        atomic_write(value, 10, false);
        begin(11, i % 4 == 3);
        ibv_wr_flush(qpx, theirs.rkey, theirs.base + WORD, 8,
                     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
        end();
        if (i % 4 == 3) {
            expect(11, IBV_WC_FLUSH);
        }
    }
    begin(12, true);
    ibv_wr_rdma_read(qpx, theirs.rkey, theirs.base + WORD);
    ibv_wr_set_sge(qpx, mr->lkey, (uintptr_t)memory, 8);
    end();
    expect(12, IBV_WC_RDMA_READ);
    if (memcmp(memory, &value, 8)) {
        fail("the READ does not see the last ATOMIC WRITE");
    }
    ask(VALUE, 8, value);
}

static void run_client(void)
{
    struct ibv_wc wc;

    flush_writes(1, 1, IBV_FLUSH_RANGE);
    flush_writes(5000, 2, IBV_FLUSH_RANGE);
    flush_writes(30001, 3, IBV_FLUSH_MR);
    atomic_write(0x1122334455667788, 5, true);
    expect(5, IBV_WC_ATOMIC_WRITE);
    ask(VALUE, 8, 0x1122334455667788);
    stream();

    /* The server's queue pair does not permit persistent FLUSH. */
    begin(6, true);
    ibv_wr_flush(qpx, theirs.rkey, theirs.base, 100, IBV_FLUSH_PERSISTENT,
                 IBV_FLUSH_RANGE);
    end();
    wc = next_wc();
    if (wc.status != IBV_WC_REM_ACCESS_ERR) {
        fail("a persistent FLUSH ended with %s",
             ibv_wc_status_str(wc.status));
    }
    ask(END, 0, 0);
}

static bool seen(const struct question *q)
{
    uint32_t i;

    switch (q->what) {
    case PATTERN:
        for (i = 0; i < q->len && i < SIZE; i++) {
            if (memory[i] != pattern(i, q->value)) {
                return false;
            }
        }
        return true;
    case VALUE:
        return !memcmp(memory + WORD, &q->value, 8);
    default:
        return true;
    }
}

static void run_server(void)
{
    struct question q;
    uint32_t good;

    do {
        hear(&q, sizeof(q));
        good = seen(&q);
        tell(&good, sizeof(good));
    } while (q.what != END);
}

int main(int argc, char **argv)
{
    const char *device = NULL, *host;
    uint32_t ready = 1;
    int opt;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((opt = getopt(argc, argv, "d:g:")) != -1) {
        if (opt == 'd') {
            device = optarg;
        } else if (opt == 'g') {
            gid_index = atoi(optarg);
        } else {
            return 2;
        }
    }
    if (!device) {
        fail("usage: rdma_placement -d DEVICE -g GID-INDEX [SERVER]");
    }
    host = argv[optind];
    open_device(device);
    make_qp();
    connect_peer(host);
    tell(&mine, sizeof(mine));
    hear(&theirs, sizeof(theirs));
    connect_qp();
    tell(&ready, sizeof(ready));
    hear(&ready, sizeof(ready));
    if (host) {
        run_client();
    } else {
        run_server();
    }
    check(ibv_destroy_qp(qp), "ibv_destroy_qp");
    check(ibv_dereg_mr(mr), "ibv_dereg_mr");
    check(ibv_destroy_cq(cq), "ibv_destroy_cq");
    check(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
    printf("placement: fine\n");
    return 0;
}
