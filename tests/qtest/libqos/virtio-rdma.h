/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client of the virtio-rdma device, for tests: verbs over virtqueues.
 *
 * Calls have the names and types of verbs. Requests, work requests and
 * completions are the structures of rdma/verbs.h. Objects, guest memory and
 * rings of a device live until the next qrdma_start() or qrdma_close(), so
 * tests free nothing.
 *
 * Functions that return a pointer assert success. Functions that return uint8_t
 * return the control status (enum virtio_rdma_status) for the test to judge.
 * The virtual clock stands still unless the test steps it. Functions that wait
 * use wall-clock time, and assert that it does not take long.
 */
#ifndef TESTS_LIBQOS_VIRTIO_RDMA_H
#define TESTS_LIBQOS_VIRTIO_RDMA_H

#include "../libqtest.h"
#include "libqos-malloc.h"
#include "virtio-pci.h"
#include "rdma/verbs.h"
#include "standard-headers/linux/virtio_config.h"
#include "standard-headers/linux/virtio_rdma.h"

#define QRDMA_F(bit) (1ull << (bit))
/* Features of a driver that knows only the RFC's device */
#define QRDMA_RFC_FEATURES (QRDMA_F(VIRTIO_F_VERSION_1) | \
                            QRDMA_F(VIRTIO_F_RING_RESET))
/* What qrdma_start() negotiates by default */
#define QRDMA_FEATURES (QRDMA_RFC_FEATURES | QRDMA_F(VIRTIO_RDMA_F_VERSION_1))
/*
 * F_DIRECT, and the objects that use it; all others have virtqueues. The high
 * bits are not feature bits of the device.
 */
#define QRDMA_DIRECT_QPS (QRDMA_F(VIRTIO_RDMA_F_DIRECT) | QRDMA_F(61))
#define QRDMA_DIRECT_CQS (QRDMA_F(VIRTIO_RDMA_F_DIRECT) | QRDMA_F(62))
#define QRDMA_DIRECT_SRQS (QRDMA_F(VIRTIO_RDMA_F_DIRECT) | QRDMA_F(63))
#define QRDMA_DIRECT (QRDMA_DIRECT_QPS | QRDMA_DIRECT_CQS | QRDMA_DIRECT_SRQS)
/* Default depth of a ring */
#define QRDMA_RING_SIZE 64
/* A millisecond of virtual time, in ns. */
#define QRDMA_MS 1000000ll
/* Bytes of a WQE buffer. */
#define QRDMA_WQE_ROOM 1024

/*
 * Assert the status of a control command. A device with the layout of the demo
 * has one for all failures.
 */
#define assert_status(call, want) \
    g_assert_cmpint((call), ==, qrdma_status(VIRTIO_RDMA_S_##want))
#define assert_ok(call) assert_status(call, OK)

/* The device in use has the layout of the demo's driver. */
extern bool qrdma_uses_demo;

/* The status that the device in use has for what is @status with F_VERSION_1 */
static inline uint8_t qrdma_status(uint8_t status)
{
    return qrdma_uses_demo && status ? VIRTIO_RDMA_S_ERR : status;
}

/* A QEMU process with a PC machine. */
typedef struct QRdmaHost {
    QTestState *qts;
    QGuestAllocator alloc;
    QPCIBus *bus;
    uint8_t *ram;                   /* NULL: the test does not share it */
    GPtrArray *devices;             /* of qrdma_open(), closed with the host */
} QRdmaHost;

typedef struct QRdma QRdma;

/* A descriptor as tests see it. */
typedef struct QRdmaDesc {
    uint64_t addr;
    uint32_t len;
    bool write;
} QRdmaDesc;

/* A virtqueue. */
typedef struct QRdmaRing {
    QVirtQueuePCI pci;              /* index, size and addresses */
    QRdma *dev;
    bool ready;
    bool packed;
    bool avail_lap;                 /* packed: the lap is an odd one */
    bool used_lap;
    uint16_t used_at;               /* packed: position of the next used one */
    uint64_t mem;
    uint64_t mem_size;
    uint16_t avail_idx;
    uint16_t used_idx;
    uint16_t nfree;
    uint16_t free_head;
    uint16_t *next;                 /* chains and the free list */
    uint16_t *fifo;                 /* heads made available, by position */
} QRdmaRing;

struct QRdma {
    QRdmaHost *host;
    QVirtioPCIDevice *pci;
    uint16_t msix_vectors;          /* size of the table; 0: no MSI-X */
    uint64_t features;
    uint64_t direct_objects;        /* high bits of QRDMA_DIRECT_* */
    /* device address minus guest address, behind an IOMMU */
    uint64_t dma_offset;
    bool hasty;                     /* do not wait for commands' answers */
    bool direct;                    /* queues are direct, if offered */
    bool demo;                      /* the layout is that of the demo */
    QPCIBar doorbells;              /* mapped on first use */
    bool has_doorbells;
    uint16_t ring_size;
    uint32_t max_cq;                /* that have virtqueues */
    uint32_t max_qp;                /* that have virtqueues */
    uint32_t max_qp_direct;
    uint32_t max_cq_direct;
    uint32_t max_srq;               /* that have virtqueues */
    uint32_t max_srq_direct;
    uint32_t cqe_size;              /* bytes, by the features */
    uint32_t n_rings;
    QRdmaRing *rings;
    uint8_t mac[RDMA_MAC_LEN];
    uint8_t gid[2][RDMA_GID_LEN];   /* of qrdma_setup_gids() */
    uint64_t ctrl_req;
    uint64_t ctrl_rsp;
    uint64_t event_buf;             /* an event per descriptor */
    GArray *mem;                    /* guest addresses to free */
    GPtrArray *objects;             /* host memory to free */
};

typedef struct QRdmaPd {
    QRdma *dev;
    uint32_t pdn;
} QRdmaPd;

typedef struct QRdmaMr {
    QRdmaPd *pd;
    uint32_t mrn;
    uint32_t lkey;
    uint32_t rkey;
    uint64_t iova;
    uint64_t length;                /* bytes */
    uint32_t npages;
    uint64_t *pages;
    uint64_t table;                 /* guest address of the page table */
} QRdmaMr;

/* An event queue */
typedef struct QRdmaEq {
    QRdma *dev;
    QRdmaRing *ring;
    uint32_t eqn;
    uint64_t buf;                   /* an event per descriptor */
} QRdmaEq;

typedef struct QRdmaCq {
    QRdma *dev;
    QRdmaRing *ring;                /* NULL: it is a direct CQ */
    uint32_t cqn;
    uint32_t cqe;
    uint64_t buf;                   /* a CQE buffer per descriptor, or slots */
    bool no_refill;                 /* do not give back polled buffers, slots */
    /* Of a direct CQ */
    QRdmaEq *eq;                    /* or NULL */
    uint64_t counters;              /* address of their page */
    uint32_t depth;
    uint32_t consumed;
    uint32_t arm;
} QRdmaCq;

typedef struct QRdmaWq {
    QRdmaRing *ring;                /* NULL: it is a direct queue */
    uint64_t buf;                   /* a WQE buffer per descriptor, or slots */
    /* Direct queue: producer counter, number of slots, bytes of a slot */
    uint64_t counters;
    uint32_t depth;
    uint32_t slot;
    uint32_t bell;                  /* value that rings its doorbell */
    uint32_t posted;
    uint32_t retired;
} QRdmaWq;

typedef struct QRdmaQp {
    QRdmaPd *pd;
    QRdma *dev;
    uint32_t qpn;                   /* in commands, CQEs and events */
    uint32_t wire_qpn;              /* to peers */
    RdmaQpType type;
    QRdmaCq *send_cq;
    QRdmaCq *recv_cq;
    QRdmaWq sq;
    QRdmaWq rq;
} QRdmaQp;

typedef struct QRdmaSrq {
    QRdma *dev;
    uint32_t srqn;
    QRdmaWq wq;
} QRdmaSrq;

typedef struct QRdmaMw {
    QRdma *dev;
    uint32_t mwn;
    uint32_t rkey;
} QRdmaMw;

/*
 * A control command with every knob that a test may want to turn. A split of
 * n puts n bytes in each descriptor, 0 all of them in one.
 */
typedef struct QRdmaCmd {
    uint8_t cmd;
    const void *req;
    size_t req_len;
    void *rsp;                      /* after the status byte */
    size_t rsp_cap;
    unsigned out_split;
    unsigned in_split;
    bool no_cmd;                    /* no readable byte at all */
    bool no_status;                 /* no writable byte at all */
    size_t used_len;                /* out: bytes the device says it wrote */
} QRdmaCmd;

/* How to connect two QPs; zero means a default. */
typedef struct QRdmaPath {
    RdmaMtu mtu;
    uint8_t gid_index;
    uint32_t psn_a;                 /* first PSN that each side sends */
    uint32_t psn_b;
    uint32_t access;
    uint8_t timeout;                /* 1..31 */
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint8_t min_rnr_timer;
    bool no_retry;                  /* take retry_cnt, rnr_retry even if 0 */
} QRdmaPath;

/* Tests of one subject; a table of them ends with an empty one. */
typedef struct QRdmaTest {
    const char *name;
    void (*run)(void);
    /* Instead of @run: a test with several cases, and the data of this case */
    void (*run_case)(const void *data);
    const void *data;
    /* The demo's layout has not what the test needs, or has another rule. */
    bool not_demo;
} QRdmaTest;

void qrdma_add_tests(const char *prefix, const QRdmaTest *tests);

/* Were all bits of @features negotiated? */
static inline bool qrdma_has(const QRdma *d, uint64_t features)
{
    return ((d->features | d->direct_objects) & features) == features;
}

/* In the environment: the name of an RDMA device of the host */
#define QRDMA_IBDEV "RDMA_TEST_IBDEV"
/*
 * The RDMA device of the host that tests run on. Each machine then has
 * "rdma-verbs" objects for the device, "v0" and "v1". NULL: tests run on the
 * devices that they describe.
 */
const char *qrdma_ibdev(void);

/* virtio-rdma.c: machines and devices */
/*
 * Start a machine. @shared: the test writes its RAM itself, without messages to
 * QEMU. QEMU does not know what the test writes: do not migrate such a machine
 * while it runs.
 */
QRdmaHost *qrdma_host_start_as(const char *machine, bool shared,
                               const char *fmt, ...) G_GNUC_PRINTF(3, 4);
#define qrdma_host_start(...) qrdma_host_start_as("pc", false, __VA_ARGS__)
#define qrdma_host_start_shared(...) \
    qrdma_host_start_as("pc", true, __VA_ARGS__)
#define qrdma_host_start_machine(machine, ...) \
    qrdma_host_start_as(machine, false, __VA_ARGS__)
/* Close its devices and end the process. */
void qrdma_host_stop(QRdmaHost *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(QRdmaHost, qrdma_host_stop)
/* Kill the process at once, without a shutdown of its devices. */
void qrdma_host_kill(QRdmaHost *host);

/* Assert that the QMP command @cmd fails, with @text in the message. */
void qrdma_qmp_refused(QTestState *qts, const char *cmd, const char *text);
/*
 * What query-rdma with @args returns, which must be one device. The caller
 * unrefs it.
 */
QDict *qrdma_query(QTestState *qts, const char *args);
/* The status of query-migrate, or "none" */
char *qrdma_migration_status(QTestState *qts);
/* Wait for the end of a migration. True: it succeeded. */
bool qrdma_migration_done(QTestState *qts);
/* The number of files that QEMU has open */
unsigned qrdma_open_files(QTestState *qts);
/* KiB of private memory of QEMU */
uint64_t qrdma_private_memory(QTestState *qts);
/* A number that is a property of the object at @path */
int64_t qrdma_qom_get(QTestState *qts, const char *path, const char *property);

/* Memory of a PC that the host bridge makes RAM, or not. The default is not. */
#define QRDMA_LEGACY_ADDR 0xc0000
void qrdma_host_set_legacy_ram(QRdmaHost *host, bool is_ram);

/*
 * Set up the root port at @port_devfn as firmware does: its bus has number 1.
 */
void qrdma_enable_bus(QRdmaHost *host, int port_devfn);
/* The same on q35, whose registers of devices then have addresses (ECAM) */
void qrdma_enable_ecam(QRdmaHost *host, int port_devfn);
/* Address of the configuration space of @devfn, with its bus number */
uint64_t qrdma_ecam(int devfn);

/* Find the device at @devfn, enable it and MSI-X; does not start it. */
QRdma *qrdma_open(QRdmaHost *host, int devfn);
void qrdma_close(QRdma *d);
/*
 * Reset the device, negotiate @features (0: QRDMA_FEATURES), set up all
 * queues with at most @ring_size entries (0: QRDMA_RING_SIZE) and set
 * DRIVER_OK.
 */
void qrdma_start(QRdma *d, uint64_t features, uint16_t ring_size);
/* The two halves of qrdma_start(), without and with DRIVER_OK. */
void qrdma_prepare(QRdma *d, uint64_t features, uint16_t ring_size);
void qrdma_driver_ok(QRdma *d);
void qrdma_reset(QRdma *d);
uint8_t qrdma_device_status(QRdma *d);
/* Does the device report that it needs a reset? */
bool qrdma_needs_reset(QRdma *d);
/* @size bytes (1, 2, 4 or 8) of configuration space in one access. */
uint64_t qrdma_config_read(QRdma *d, uint32_t offset, unsigned size);
void qrdma_config_write(QRdma *d, uint32_t offset, unsigned size,
                        uint64_t value);
/* A field of 32 bits in configuration space */
#define qrdma_config_le32(d, field) \
    qrdma_config_read((d), offsetof(struct virtio_rdma_config, field), 4)
/* Bytes of configuration space in the layout of the demo */
#define QRDMA_DEMO_CONFIG_SIZE 648
#define QRDMA_DEMO_CQE_SIZE 48
/* Configuration space, read bytewise. */
void qrdma_get_config(QRdma *d, struct virtio_rdma_config *config);

/* The GID of 10.0.0.@host */
void qrdma_ipv4_gid(uint8_t gid[RDMA_GID_LEN], uint8_t host);

/* Zeroed guest memory, page aligned. */
uint64_t qrdma_alloc(QRdma *d, uint64_t size);
void qrdma_write(QRdma *d, uint64_t addr, const void *data, size_t size);
void qrdma_memset(QRdma *d, uint64_t addr, uint8_t byte, size_t size);
void qrdma_read(QRdma *d, uint64_t addr, void *data, size_t size);
/* Read a word after a full barrier. The test itself reads shared RAM. */
uint32_t qrdma_load_word(QRdma *d, uint64_t addr);
/* Host memory that lives as long as the objects of @d. */
void *qrdma_own(QRdma *d, size_t size);

/* The device's address of guest memory. */
static inline uint64_t qrdma_dma(const QRdma *d, uint64_t addr)
{
    return addr + d->dma_offset;
}

/* Give device and peers a moment of wall-clock time. */
void qrdma_settle(QRdma *d);
void qrdma_host_settle(QRdmaHost *host);
/* Let @ns of the machine's virtual time pass, timers in order. */
void qrdma_clock_step(QRdma *d, int64_t ns);

/*
 * Timeout of waits, in microseconds: 20 seconds, or RDMA_TEST_WAIT seconds from
 * the environment
 */
int64_t qrdma_patience(void);

/* Wait until @cond is true, and run @d meanwhile; a timeout fails the test. */
#define qrdma_wait_until(d, cond) do { \
    gint64 qrdma_end_ = g_get_monotonic_time() + qrdma_patience(); \
    while (!(cond)) { \
        g_assert_cmpint(g_get_monotonic_time(), <, qrdma_end_); \
        g_usleep(50); \
    } \
} while (0)

/* virtio-rdma-ring.c: virtqueues */
QRdmaRing *qrdma_ring(QRdma *d, uint32_t index);
/* Set up a ring that is new or was reset. */
void qrdma_ring_setup(QRdmaRing *r, uint16_t size);
/* Reset one virtqueue (VIRTIO_F_RING_RESET); it is then not set up. */
void qrdma_ring_reset(QRdmaRing *r);
/*
 * Reset the ring if the driver can, and set it up. With the layout of the demo
 * start it again at index 0, as the device has done.
 */
void qrdma_ring_renew(QRdmaRing *r);
/* Make a chain available without a kick; returns its head. */
uint16_t qrdma_ring_add(QRdmaRing *r, const QRdmaDesc *desc, unsigned n);
void qrdma_ring_kick(QRdmaRing *r);
/* Take the next used element; asserts that the id makes sense. */
bool qrdma_ring_get(QRdmaRing *r, uint16_t *head, uint32_t *len);
uint16_t qrdma_ring_used_idx(QRdmaRing *r);
/* Raw access for malformed (split) rings. */
void qrdma_ring_set_desc(QRdmaRing *r, uint16_t i, uint64_t addr,
                         uint32_t len, uint16_t flags, uint16_t next);
void qrdma_ring_set_avail(QRdmaRing *r, uint16_t slot, uint16_t head);
void qrdma_ring_set_avail_idx(QRdmaRing *r, uint16_t idx);
/*
 * Does the device want a kick for buffers made available since avail_idx @old?
 */
bool qrdma_ring_wants_kick(QRdmaRing *r, uint16_t old);
/* Interrupts of the ring write @data to @addr from now on. */
void qrdma_ring_aim(const QRdmaRing *r, uint64_t addr, uint32_t data);
/* Was an interrupt sent for the ring since the last call? */
bool qrdma_ring_irq(QRdmaRing *r);

/* virtio-rdma-direct.c: direct queues, with doorbells in page 1 */

/* Slots of each queue, and their bytes */
#define QRDMA_DIRECT_DEPTH_SHIFT 6
#define QRDMA_DIRECT_SLOT_SHIFT 11
#define QRDMA_DIRECT_DOORBELL 1
/*
 * Zeroed guest memory for a direct queue of @npages, at *@mem; returns the
 * address of the list of its pages.
 */
uint64_t qrdma_direct_alloc(QRdma *d, uint32_t npages, uint64_t *mem);
/* Guest memory for the queues of @qp, which @req then describes. */
void qrdma_direct_init(QRdmaQp *qp, bool has_srq,
                       struct virtio_rdma_create_qp_req *req);
/* The same for @srq, at least as deep as the queues of QPs */
void qrdma_direct_srq_init(QRdmaSrq *srq,
                           struct virtio_rdma_create_srq_req *req);
/* Write the next slot, and advance the producer. */
void qrdma_direct_post(QRdma *d, QRdmaWq *wq, const void *wqe, size_t len);
/* Does the device poll the queue, so that it needs no doorbell? */
bool qrdma_direct_awake(QRdma *d, const QRdmaWq *wq);
void qrdma_direct_set_producer(QRdma *d, const QRdmaWq *wq, uint32_t value);
/* Mark QP @qpn in the shadow page at @shadow, as a process does. */
void qrdma_shadow_mark(QRdma *d, uint64_t shadow, uint32_t qpn);
/* Write to a page of doorbells. */
void qrdma_doorbell(QRdma *d, uint32_t page, uint32_t value);
/* The same @n times, by turns, while the device does not run in between */
void qrdma_doorbell_in_a_row(QRdma *d, uint32_t page, const uint32_t value[2],
                             unsigned n);
/* Set the shadow of @page to guest address @addr; 0: none. */
uint8_t qrdma_set_shadow(QRdma *d, uint16_t page, uint64_t addr);

/* virtio-rdma-direct-cq.c: direct CQs and event queues */

/*
 * Zeroed guest memory for a direct CQ, at *@mem; returns the address of a list
 * of its *@npages.
 */
uint64_t qrdma_direct_cq_alloc(QRdma *d, uint8_t depth_shift,
                               uint32_t *npages, uint64_t *mem);
/* Guest memory for @cq, as deep as it says, which @req then describes. */
void qrdma_direct_cq_init(QRdmaCq *cq, struct virtio_rdma_create_cq_req *req);
QRdmaCq *qrdma_create_direct_cq(QRdma *d, uint32_t cqe, QRdmaEq *eq);
/* CQEs that are not consumed move to the new memory. */
uint8_t qrdma_resize_direct_cq(QRdmaCq *cq, uint32_t cqe);
bool qrdma_direct_cq_has_cqe(QRdmaCq *cq);
/* The next CQE as it is in memory; false if there is none. */
bool qrdma_direct_cq_get(QRdmaCq *cq, struct virtio_rdma_cqe_ex *cqe);
void qrdma_direct_cq_set_consumer(QRdmaCq *cq, uint32_t value);
/* VIRTIO_RDMA_NOTIFY_* */
void qrdma_arm_direct_cq(QRdmaCq *cq, uint32_t flags);

uint8_t qrdma_try_create_eq(QRdma *d, uint32_t cqe, uint32_t *eqn);
QRdmaEq *qrdma_create_eq(QRdma *d, uint32_t buffers);
void qrdma_refill_eq(QRdmaEq *eq, uint32_t n);
/*
 * Take the next event, and store its CQ. False: none. The buffer is not given
 * back.
 */
bool qrdma_eq_get(QRdmaEq *eq, uint32_t *cqn);
uint8_t qrdma_destroy_eq(QRdmaEq *eq);

/* virtio-rdma-demo.c: the layout of the demo's driver */

/* The device was opened with layout=demo,mac=52:54:00:12:34:01. */
void qrdma_use_demo(QRdma *d);
/* These return the number of bytes in the layout that they convert to. */
size_t qrdma_demo_request(uint8_t cmd, const void *req, size_t len, void *out);
size_t qrdma_demo_response_size(uint8_t cmd, size_t size);
size_t qrdma_demo_response(uint8_t cmd, const void *in, size_t len, void *rsp);
size_t qrdma_demo_wqe(bool send, const void *wqe, size_t len, void *out);
void qrdma_demo_cqe(const void *in, void *cqe);
void qrdma_demo_config(const void *in, void *config);

/* virtio-rdma-ctrl.c: control commands */
uint8_t qrdma_cmd_raw(QRdma *d, QRdmaCmd *c);
/* A command as drivers send it; asserts that a successful reply is complete. */
uint8_t qrdma_cmd(QRdma *d, uint8_t cmd, const void *req, size_t req_len,
                  void *rsp, size_t rsp_len);
/* The same for VIRTIO_RDMA_CMD_@name, whose request and response are objects */
#define qrdma_call(d, name, req, rsp) \
    qrdma_cmd(d, VIRTIO_RDMA_CMD_##name, req, sizeof(*(req)), \
              rsp, sizeof(*(rsp)))
/* A command without a response besides the status */
#define qrdma_call_void(d, name, req) \
    qrdma_cmd(d, VIRTIO_RDMA_CMD_##name, req, sizeof(*(req)), NULL, 0)
/* Assert the status of a command whose request @req has another @field. */
#define assert_field(call, req, field, value, want) do { \
    typeof(req) good_ = (req); \
    (req).field = (value); \
    assert_status(call, want); \
    (req) = good_; \
} while (0)

/* A command that waits in the control queue */
typedef struct QRdmaWaiting {
    QRdma *d;
    uint64_t req;                   /* guest address, of the command's byte */
    uint64_t rsp;                   /* of the status */
} QRdmaWaiting;

#define QRDMA_NO_STATUS 0xff

/* Make a command available, without a notification. */
QRdmaWaiting qrdma_enqueue(QRdma *d, uint8_t cmd, const void *req, size_t len,
                           size_t rsp_len);
/*
 * The same with REG_USER_MR of millions of pages, whose tables are the same
 * one.
 */
QRdmaWaiting qrdma_enqueue_long(QRdmaPd *pd);
/* QRDMA_NO_STATUS: there is none yet */
uint8_t qrdma_status_of(const QRdmaWaiting *w);
/* Wait until @n commands have come back. */
void qrdma_reap_commands(QRdma *d, unsigned n);

/* Wire form of QP attributes. */
void qrdma_encode_qp_attr(struct virtio_rdma_qp_attr *out,
                          const RdmaQpAttr *in);

uint8_t qrdma_query_port(QRdma *d, uint8_t port,
                         struct virtio_rdma_query_port_rsp *rsp);
uint8_t qrdma_query_pkey(QRdma *d, uint32_t port, uint16_t index,
                         uint16_t *pkey);
uint8_t qrdma_add_gid(QRdma *d, uint16_t index, const uint8_t *gid);
uint8_t qrdma_add_gid_vlan(QRdma *d, uint16_t index, const uint8_t *gid,
                           uint16_t vlan);
uint8_t qrdma_add_gid_full(QRdma *d, uint16_t index, const uint8_t *gid,
                           uint32_t type, uint32_t port);
uint8_t qrdma_del_gid(QRdma *d, uint16_t index, uint32_t port);
/*
 * Set GID 0 to an IPv6 and GID 1 to an IPv4 address, made of @id. With
 * qrdma_ibdev(), use the host's GIDs if sysfs has them.
 */
void qrdma_setup_gids(QRdma *d, uint8_t id);

/* A command that destroys the object of this number */
uint8_t qrdma_destroy(QRdma *d, uint8_t cmd, uint32_t number);
uint8_t qrdma_try_alloc_pd(QRdma *d, uint32_t *pdn);
QRdmaPd *qrdma_alloc_pd(QRdma *d);
uint8_t qrdma_dealloc_pd(QRdmaPd *pd);

uint8_t qrdma_try_create_cq(QRdma *d, uint32_t cqe, uint32_t *cqn);
/*
 * Create a CQ, a direct one if that was negotiated. Otherwise fill its ring
 * with @cqe buffers, or with as many as fit.
 */
QRdmaCq *qrdma_create_cq(QRdma *d, uint32_t cqe);
/* On success, reset the ring if the driver can, and set it up again. */
uint8_t qrdma_destroy_cq(QRdmaCq *cq);
uint8_t qrdma_req_notify_cq(QRdmaCq *cq, uint32_t flags);
uint8_t qrdma_resize_cq(QRdmaCq *cq, uint32_t cqe, uint32_t used);
uint8_t qrdma_query_counters(QRdma *d, uint8_t port, uint64_t *values);
/* One counter of port 1 */
uint64_t qrdma_counter(QRdma *d, unsigned counter);
/* The sums of @n QPs; up to VIRTIO_RDMA_MAX_COUNTER_QPS numbers are sent. */
uint8_t qrdma_query_qp_counters(QRdma *d, uint32_t n, const uint32_t *qpns,
                                uint64_t *values);

/* Write a table of @npages pages; returns its guest address. */
uint64_t qrdma_write_pages(QRdma *d, const uint64_t *pages, uint32_t npages);
/* Guest pages in reverse order and a table of them. */
void qrdma_alloc_pages(QRdma *d, uint32_t npages, uint64_t **pages,
                       uint64_t *table);
QRdmaMr *qrdma_reg_mr(QRdmaPd *pd, uint64_t iova, uint64_t length,
                      uint32_t access);
/* Any request, without checks; @rsp may be NULL. */
uint8_t qrdma_reg_user_mr(QRdma *d,
                          const struct virtio_rdma_reg_user_mr_req *req,
                          struct virtio_rdma_mr_rsp *rsp);
/* Register contiguous guest memory at @addr, in order. */
QRdmaMr *qrdma_reg_mr_at(QRdmaPd *pd, uint64_t iova, uint64_t length,
                         uint32_t access, uint64_t addr);
QRdmaMr *qrdma_get_dma_mr(QRdmaPd *pd, uint32_t access);
QRdmaMr *qrdma_alloc_mr(QRdmaPd *pd, uint32_t access, uint32_t max_num_sg);
uint8_t qrdma_map_mr_sg(QRdmaMr *mr, uint64_t iova, uint64_t length);
uint8_t qrdma_dereg_mr(QRdmaMr *mr);
/* Memory of a registered region, by offset from its start. */
void qrdma_mr_write(QRdmaMr *mr, uint64_t offset, const void *data,
                    size_t size);
void qrdma_mr_read(QRdmaMr *mr, uint64_t offset, void *data, size_t size);
/* Fill with bytes that are a function of @seed and position. */
void qrdma_mr_fill(QRdmaMr *mr, uint64_t offset, size_t size, uint8_t seed);
void qrdma_mr_check(QRdmaMr *mr, uint64_t offset, size_t size, uint8_t seed);
RdmaSge qrdma_sge(QRdmaMr *mr, uint64_t offset, uint32_t length);

/* Bytes of the response to CREATE_QP besides the status, by the features */
size_t qrdma_create_qp_rsp_size(const QRdma *d);
uint8_t qrdma_try_create_qp(QRdma *d, const RdmaQpInitAttr *init,
                            uint32_t *qpn);
/* The same; *@wire_qpn is *@qpn without F_HOST_NUMBERS. */
uint8_t qrdma_try_create_qp_nums(QRdma *d, const RdmaQpInitAttr *init,
                                 uint32_t *qpn, uint32_t *wire_qpn);
QRdmaQp *qrdma_create_qp_attr(QRdmaPd *pd, QRdmaCq *send_cq,
                              QRdmaCq *recv_cq, const RdmaQpInitAttr *init);
/* A QP of 32 WRs (or the size of its rings), 4 SGEs, 128 bytes inline */
QRdmaQp *qrdma_create_qp(QRdmaPd *pd, QRdmaCq *send_cq, QRdmaCq *recv_cq,
                         RdmaQpType type);
/* Memory for a direct QP like that, of type RC, which @req then describes */
QRdmaQp *qrdma_describe_qp(QRdmaPd *pd, QRdmaCq *cq,
                           struct virtio_rdma_create_qp_req *req);
/* Create the QP that @req describes. */
uint8_t qrdma_create_described_qp(QRdmaQp *qp,
                                  const struct virtio_rdma_create_qp_req *req);
uint8_t qrdma_modify_qp(QRdmaQp *qp, uint32_t mask, const RdmaQpAttr *attr);
RdmaQpState qrdma_qp_state(QRdmaQp *qp);
uint8_t qrdma_modify_qp_state(QRdmaQp *qp, RdmaQpState state);
uint8_t qrdma_query_qp(QRdmaQp *qp, RdmaQpAttr *attr);
/* On success, reset both rings like qrdma_destroy_cq(). */
uint8_t qrdma_destroy_qp(QRdmaQp *qp);

/* virtio-rdma-srq.c: shared receive queues, windows, multicast groups */
/* Create an SRQ with a virtqueue. */
uint8_t qrdma_try_create_srq(QRdma *d, const RdmaSrqAttr *attr,
                             uint32_t *srqn);
/* Create a direct SRQ, if that was negotiated. */
QRdmaSrq *qrdma_create_srq(QRdmaPd *pd, uint32_t max_wr, uint32_t max_sge);
QRdmaSrq *qrdma_create_srq_limit(QRdmaPd *pd, uint32_t max_wr,
                                 uint32_t max_sge, uint32_t limit);
uint8_t qrdma_modify_srq(QRdmaSrq *srq, uint32_t limit);
uint8_t qrdma_query_srq(QRdmaSrq *srq, RdmaSrqAttr *attr);
/* On success, reset the ring like qrdma_destroy_cq(). */
uint8_t qrdma_destroy_srq(QRdmaSrq *srq);
void qrdma_post_srq_recv(QRdmaSrq *srq, const RdmaRecvWr *wr);
/* A receive of one SGE, or of none if @sge is NULL */
void qrdma_srq_recv(QRdmaSrq *srq, uint64_t wr_id, const RdmaSge *sge);

uint8_t qrdma_alloc_mw(QRdmaPd *pd, RdmaMwType type, QRdmaMw *mw);
uint8_t qrdma_dealloc_mw(const QRdmaMw *mw);

uint8_t qrdma_attach_mcast(QRdmaQp *qp, const uint8_t gid[RDMA_GID_LEN]);
uint8_t qrdma_detach_mcast(QRdmaQp *qp, const uint8_t gid[RDMA_GID_LEN]);

/* virtio-rdma-event.c: asynchronous events */
/* Give the device @n more buffers. */
void qrdma_add_event_buffers(QRdma *d, unsigned n);
bool qrdma_poll_event(QRdma *d, RdmaEvent *event);
/* Wait for the next event. */
void qrdma_expect_event(QRdma *d, RdmaEventType type, uint32_t id);
/* Assert that no event is there now. */
void qrdma_expect_no_event(QRdma *d);

/* virtio-rdma-verbs.c: connections and the data path */
uint8_t qrdma_modify_init(QRdmaQp *qp, uint32_t access);
uint8_t qrdma_modify_rtr(QRdmaQp *qp, QRdmaQp *peer, const QRdmaPath *path,
                         uint32_t rq_psn);
uint8_t qrdma_modify_rts(QRdmaQp *qp, const QRdmaPath *path,
                         uint32_t sq_psn);
/*
 * Valid attributes for each step of an RC QP that is its own peer. The mask
 * selects those of the step to @to.
 */
RdmaQpAttr qrdma_good_attr(QRdmaQp *qp, RdmaQpState to);
/* RC, UC: connect the two, or a QP with itself. NULL: usual path. */
void qrdma_connect(QRdmaQp *a, QRdmaQp *b, const QRdmaPath *path);
/* The same from any state, by way of RESET */
void qrdma_reconnect(QRdmaQp *a, QRdmaQp *b, const QRdmaPath *path);
/* Connect an RC or UC QP to a peer that is not there; it sends from @psn on. */
void qrdma_connect_absent(QRdmaQp *qp, const QRdmaPath *path, uint32_t psn);
/* An RC QP that is connected with itself */
QRdmaQp *qrdma_create_loop(QRdmaPd *pd, QRdmaCq *send_cq, QRdmaCq *recv_cq);
/* Bring a UD or GSI QP to RTS. */
void qrdma_start_ud(QRdmaQp *qp, uint32_t qkey);
/* Connect two RC or UC QPs, or bring two UD or GSI QPs to RTS. */
void qrdma_bring_up(QRdmaQp *a, QRdmaQp *b, const QRdmaPath *path);
/* Address vector that leads to @to. */
RdmaAv qrdma_av(QRdma *to, uint8_t gid_index);

#define QRDMA_QKEY 0x1234567

/* A signaled WR of one SGE, or of none if @sge is NULL */
RdmaSendWr qrdma_wr(RdmaWrOpcode opcode, uint64_t wr_id, const RdmaSge *sge);
/* The same, also of an atomic, with @mr at @offset as its remote memory */
RdmaSendWr qrdma_rdma_wr(RdmaWrOpcode opcode, uint64_t wr_id,
                         const RdmaSge *sge, const QRdmaMr *mr,
                         uint64_t offset);
/* A datagram to @to, which has QRDMA_QKEY or is a GSI QP */
RdmaSendWr qrdma_ud_wr(uint64_t wr_id, const RdmaSge *sge, const QRdmaQp *to,
                       uint8_t gid_index);
/* An invalidation of a key of a region or a window */
RdmaSendWr qrdma_invalidate_wr(uint64_t wr_id, uint32_t rkey);
/* A bind of @mw, which gets the next key, to a part of @mr */
RdmaSendWr qrdma_bind_wr(const QRdmaMw *mw, const QRdmaMr *mr, uint64_t offset,
                         uint64_t length, uint32_t access);
size_t qrdma_encode_send(QRdmaQp *qp, const RdmaSendWr *wr, uint8_t *wqe);
size_t qrdma_encode_recv(const RdmaRecvWr *wr, uint8_t *wqe);
/*
 * Kick the receives that were posted, so that the host's device has them. A
 * device that has its own numbers takes messages as they come, and knows only
 * of receives that were kicked.
 */
void qrdma_hand_over(QRdma *d);
/* Post and kick. Receives are handed over, too. */
void qrdma_post_send(QRdmaQp *qp, const RdmaSendWr *wr);
void qrdma_post_recv(QRdmaQp *qp, const RdmaRecvWr *wr);
/* The same, with a WR by value, and with a receive of one SGE or of none */
void qrdma_post(QRdmaQp *qp, RdmaSendWr wr);
void qrdma_recv(QRdmaQp *qp, uint64_t wr_id, const RdmaSge *sge);
/*
 * Write the next slot of a direct queue without a doorbell, as a process does.
 */
void qrdma_put_send(QRdmaQp *qp, RdmaSendWr wr);
void qrdma_put_recv(QRdma *d, QRdmaWq *wq, uint64_t wr_id, const RdmaSge *sge);
/* Any bytes as a WQE, in descriptors of @split bytes (0: one). */
void qrdma_post_raw(QRdmaQp *qp, QRdmaWq *wq, const void *wqe, size_t len,
                    unsigned split, bool kick);
void qrdma_post_wqe(QRdma *d, QRdmaWq *wq, const void *wqe, size_t len,
                    unsigned split, bool kick);
/* REG_MR that carries the list at guest address @list. */
void qrdma_post_reg_pages(QRdmaQp *qp, const RdmaSendWr *wr, uint64_t list);
/* Take back used WQE buffers; asserts order and length 0. */
uint32_t qrdma_reap(QRdmaWq *wq);

/* Wait until the device has used all posted WQEs. */
void qrdma_reap_all(QRdma *d, QRdmaWq *wq);

bool qrdma_cq_has_cqe(QRdmaCq *cq);
/* One completion, if there is one; its buffer goes back to the ring. */
bool qrdma_poll_cq(QRdmaCq *cq, RdmaWc *wc);
/* Wait for the next completion. */
void qrdma_wait_cq(QRdmaCq *cq, RdmaWc *wc);
/* Wait for a completion, and check its wr_id and status; @wc may be NULL. */
void qrdma_expect(QRdmaCq *cq, uint64_t wr_id, RdmaWcStatus status);
/* The same for @n completions, whose wr_id counts from @first */
void qrdma_expect_many(QRdmaCq *cq, uint64_t first, unsigned n,
                       RdmaWcStatus status);
/* The next completion has any error, which is returned. */
RdmaWcStatus qrdma_expect_error(QRdmaCq *cq, uint64_t wr_id);
void qrdma_expect_wc(QRdmaCq *cq, uint64_t wr_id, RdmaWcOpcode opcode,
                     RdmaWc *wc);
/* Post @wr, and wait for its completion. */
void qrdma_post_expect(QRdmaQp *qp, RdmaSendWr wr, RdmaWcStatus status);
/* The same, for a request that succeeds with @opcode */
void qrdma_post_expect_wc(QRdmaQp *qp, RdmaSendWr wr, RdmaWcOpcode opcode);
/* Give the ring @n buffers, with a kick if the device wants it. */
void qrdma_refill_cq(QRdmaCq *cq, unsigned n);
/* Settle, and assert that no completion is there then. */
void qrdma_expect_none(QRdmaCq *cq);

#endif
