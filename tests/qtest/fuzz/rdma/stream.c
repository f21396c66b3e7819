/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: save it at any point, reset it, and load
 * it from the stream, or from the stream with changes of the input.
 */
#include "qemu/osdep.h"
#include "io/channel-buffer.h"
#include "migration/qemu-file.h"
#include "migration/qemu-file-types.h"
#include "system/runstate.h"
#include "rdma-fuzz.h"

#define STREAM_ROOM 65536
#define DEVICE_VERSION 1            /* of virtio's part */

static uint8_t *save(VirtIODevice *vdev, size_t *len)
{
    QIOChannelBuffer *buf = qio_channel_buffer_new(STREAM_ROOM);
    QEMUFile *f = qemu_file_new_output(QIO_CHANNEL(buf));
    uint8_t *data;

    virtio_save(vdev, f);
    qemu_fflush(f);
    *len = buf->usage;
    data = g_memdup2(buf->data, buf->usage);
    qemu_fclose(f);
    object_unref(OBJECT(buf));
    return data;
}

static int load(VirtIODevice *vdev, const uint8_t *data, size_t len)
{
    QIOChannelBuffer *buf = qio_channel_buffer_new(len);
    QEMUFile *f = qemu_file_new_input(QIO_CHANNEL(buf));
    int ret;

    memcpy(buf->data, data, len);
    buf->usage = len;
    ret = virtio_load(vdev, f, DEVICE_VERSION);
    qemu_fclose(f);
    object_unref(OBJECT(buf));
    return ret;
}

static void migrate(FuzzIn *in, bool mutate)
{
    FuzzFunction *f = &fuzz_guest.rdma;
    unsigned tears = fuzz_guest.tears;
    g_autofree uint8_t *data = NULL;
    size_t len;
    uint8_t n;
    int ret;

    /* vCPUs are stopped, so memory does not change */
    fuzz_guest.tears = 0;
    vm_state_notify(false, RUN_STATE_FINISH_MIGRATE);
    data = save(f->vdev, &len);
    for (n = mutate ? 1 + in_u8(in) % 8 : 0; n; n--) {
        uint8_t how = in_u8(in);
        size_t at = in_u32(in) % len;

        if (how == 0) {
            len = at + 1;
        } else if (how & 1) {
            data[at] ^= how;
        } else {
            data[at] = in_u8(in);
        }
    }
    device_cold_reset(DEVICE(f->proxy));
    ret = load(f->vdev, data, len);
    fuzz_drop_intx(&f->proxy->pci_dev);
    if (ret < 0) {
        /* A destination would end here */
        device_cold_reset(DEVICE(f->proxy));
    }
    vm_state_notify(true, RUN_STATE_RUNNING);
    fuzz_guest.tears = tears;
    fuzz_settle();
}

void fuzz_op_migrate(FuzzIn *in)
{
    migrate(in, false);
}

void fuzz_op_mutate(FuzzIn *in)
{
    migrate(in, true);
}
