/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Front ends of vhost-user servers: rings that the guest may not have, and a
 * server that ends while its front end needs an answer.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "migrate-test.h"
#include "standard-headers/linux/virtio_pci.h"

#define COMMON(field) \
    offsetof(struct virtio_pci_modern_common_cfg, field)
#define READY (VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | \
               VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK)
#define SLOT 4
#define LAST_QUEUE 1023             /* that a PCI device can have */
/* QEMU can map its descriptors outside of memory, but not its other parts. */
#define RING_SIZE 256
/* Nothing is at this address. */
#define NOWHERE 0xd0000000
/* A server that is stopped ends after this time. */
#define END_US 300000
/* Bytes of a server's state that a destination has before the server ends */
#define STATE_PART 60

static void store(QRdma *d, size_t field, uint16_t value)
{
    qpci_io_writew(d->pci->pdev, d->pci->bar,
                   d->pci->common_cfg_offset + field, value);
}

static void enable_ring(QRdma *d, uint64_t addr)
{
    QVirtQueue vq = { .desc = addr, .avail = addr, .used = addr };

    store(d, COMMON(cfg.queue_size), RING_SIZE);
    d->pci->vdev.bus->set_queue_address(&d->pci->vdev, &vq);
    store(d, COMMON(cfg.queue_enable), 1);
}

static void no_journey(Trip *t, unsigned round)
{
}

/* Rings that the adapter does not have, and one that runs */
static void test_rings_are_kept(void)
{
    static const struct {
        uint16_t n;
        uint64_t addr;
        bool reset;
    } cases[] = {
        { MIGRATE_SERVED_QUEUES, NOWHERE },
        { LAST_QUEUE, NOWHERE },
        { MIGRATE_SERVED_QUEUES, NOWHERE, true },
        { LAST_QUEUE, NOWHERE, true },
        { VIRTIO_RDMA_CTRL_VQ, 0 },
        { VIRTIO_RDMA_CTRL_VQ, NOWHERE },
    };
    g_autoptr(Trip) t = trip_new_served(NULL);
    QRdma *d = t->net.dev[0];

    trip_connect(t);
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        store(d, COMMON(cfg.queue_select), cases[i].n);
        if (cases[i].reset) {
            store(d, COMMON(queue_reset), 1);
        } else {
            enable_ring(d, cases[i].addr);
        }
    }
    trip_travel_on(t, 0, 2, no_journey);
    qvirtio_reset(&d->pci->vdev);
}

static void wait_for_chardev(QTestState *qts, const char *state)
{
    for (;;) {
        g_autofree char *text = qtest_hmp(qts, "info chardev");

        if (strstr(text, state)) {
            return;
        }
        g_usleep(1000);
    }
}

static void place_ring_nowhere(QRdma *d)
{
    store(d, COMMON(cfg.queue_select), VIRTIO_RDMA_CTRL_VQ);
    enable_ring(d, NOWHERE);
}

/* The front end cannot start the ring, and so must not stop it later. */
static void test_ring_without_memory(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);
    QRdma *d = t->net.dev[0];

    trip_connect(t);
    qrdma_ring_reset(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
    place_ring_nowhere(d);
    qvirtio_reset(&d->pci->vdev);
}

/* The front end cannot start the device. Then the server ends. */
static void test_device_without_ring(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);
    QRdma *d = t->net.dev[0];
    QVirtioDevice *vdev = &d->pci->vdev;

    trip_connect(t);
    qvirtio_reset(vdev);
    qvirtio_set_acknowledge(vdev);
    qvirtio_set_driver(vdev);
    qvirtio_set_features(vdev, d->features);
    place_ring_nowhere(d);
    vdev->bus->set_status(vdev, READY);
    g_clear_pointer(&t->server[0], qtest_quit);
    wait_for_chardev(t->net.host[0]->qts, "disconnected");
    qvirtio_reset(vdev);
}

static gpointer end_server(gpointer data)
{
    pid_t pid = qtest_pid(data);

    g_usleep(END_US);
    kill(pid, SIGTERM);
    kill(pid, SIGCONT);
    return NULL;
}

/* The device is stopped for the last time, and the server does not answer. */
static void test_end_during_unplug(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);
    QTestState *qts = t->net.host[0]->qts;
    GThread *thread;

    trip_connect(t);
    kill(qtest_pid(t->server[0]), SIGSTOP);
    thread = g_thread_new("end", end_server, t->server[0]);
    qpci_unplug_acpi_device_test(qts, "d0", SLOT);
    g_thread_join(thread);
    qtest_qmp_assert_success(qts, "{'execute': 'query-status'}");
    g_clear_pointer(&t->server[0], qtest_quit);
}

static int connect_to(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    g_assert_cmpint(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), ==,
                    0);
    return fd;
}

/* The reader waits for more. */
static void wait_until_read(int fd)
{
    int unread;

    do {
        g_usleep(1000);
        g_assert_cmpint(ioctl(fd, SIOCOUTQ, &unread), ==, 0);
    } while (unread);
}

static void test_end_during_load(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);
    g_autofree char *saved = NULL, *stream = NULL, *uri = NULL;
    g_autofree char *path = g_strdup_printf("%s/migrate", t->net.dir);
    QTestState *to;
    size_t size, part;
    char *state;
    int fd;

    trip_connect(t);
    saved = trip_save(t, 0);
    g_assert_true(g_file_get_contents(saved, &stream, &size, NULL));
    state = memmem(stream, size, "VUS1", 4);
    g_assert_nonnull(state);
    part = state - stream + STATE_PART;

    to = trip_start_refusing(t, 0, MIGRATE_SERVED, "");
    uri = g_strdup_printf("unix:%s", path);
    trip_migrate_from(to, uri);
    fd = connect_to(path);
    g_assert_cmpint(qemu_write_full(fd, stream, part), ==, part);
    wait_until_read(fd);
    qtest_qmp_assert_success(to, "{'execute': 'query-status'}");
    g_clear_pointer(&t->other_server[0], qtest_quit);
    wait_for_chardev(to, "disconnected");
    /* The destination ends before it has read all of this. */
    send(fd, stream + part, size - part, MSG_NOSIGNAL);
    trip_expect_refusal(t, to, "cannot load the state of the server");
    close(fd);
    g_unlink(path);
    g_unlink(saved);
}

const QRdmaTest migrate_served_end_tests[] = {
    { "served/rings-are-kept", test_rings_are_kept },
    { "served/ring-without-memory", test_ring_without_memory },
    { "served/device-without-ring", test_device_without_ring },
    { "served/end-during-unplug", test_end_during_unplug },
    { "served/end-during-load", test_end_during_load },
    {}
};
