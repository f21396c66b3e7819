/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of the device, which the front end migrates.
 *
 * The state is in a file in memory, which the server makes. So the server waits
 * for nothing: it writes the whole state before the front end reads it, and
 * reads the state after the front end has written it.
 *
 * A state that is loaded is as little trusted as a migration stream.
 */
#include "qemu/osdep.h"
#include "io/channel-file.h"
#include "migration/qemu-file.h"
#include "migration/qemu-file-types.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/memfd.h"
#include "qemu/units.h"
#include "system/rdma-vmstate.h"
#include "server.h"

/* What the file begins with, before the name of the state, and ends with */
#define MAGIC 0x56555331            /* VUS1 */
#define END_MAGIC 0x454e4431        /* END1 */

/* More than any device has: the page lists of 4 TiB of memory take 8 GiB. */
#define MAX_STATE (16 * GiB)

static const VMStateDescription *description(VhostUserServer *s)
{
    return VHOST_USER_SERVER_GET_CLASS(s)->state;
}

static bool save(VhostUserServer *s, Error **errp)
{
    const VMStateDescription *vmsd = description(s);
    QIOChannelFile *ioc = qio_channel_file_new_dupfd(s->state_fd, errp);
    QEMUFile *f;
    int ret, flushed;

    if (!ioc) {
        return false;
    }
    f = qemu_file_new_output(QIO_CHANNEL(ioc));
    object_unref(OBJECT(ioc));
    qemu_put_be32(f, MAGIC);
    qemu_put_counted_string(f, vmsd->name);
    qemu_put_be32(f, vmsd->version_id);
    ret = rdma_vmstate_save(f, vmsd, s, NULL);
    qemu_put_be32(f, END_MAGIC);
    flushed = qemu_fclose(f);
    if (ret < 0 || flushed < 0) {
        error_setg_errno(errp, ret < 0 ? -ret : -flushed, "cannot save the "
                         "state of the device");
        return false;
    }
    if (lseek(s->state_fd, 0, SEEK_SET) < 0) {
        error_setg_errno(errp, errno, "cannot rewind the state of the device");
        return false;
    }
    return true;
}

int vus_state_open(VhostUserServer *s, VusDirection direction)
{
    Error *err = NULL;

    vus_state_close(s);
    s->loads_state = direction == VUS_LOAD;
    /* The front end cannot seal a file that has no seals at first. */
    s->state_fd = qemu_memfd_create("vhost-user-server-state", 0, false, 0,
                                    s->loads_state ? F_SEAL_SHRINK : 0, &err);
    if (s->state_fd >= 0 && direction == VUS_SAVE && !save(s, &err)) {
        vus_state_close(s);
    }
    if (err) {
        error_reportf_err(err, "%s: ", s->path);
    }
    return s->state_fd;
}

void vus_state_close(VhostUserServer *s)
{
    /* A front end that keeps its descriptor must not keep our pages. */
    if (s->state_fd >= 0 && !s->loads_state) {
        int ignored G_GNUC_UNUSED = ftruncate(s->state_fd, 0);
    }
    vus_fd_close(&s->state_fd);
}

static bool load_header(VhostUserServer *s, QEMUFile *f)
{
    const VMStateDescription *vmsd = description(s);
    char name[256];

    if (qemu_get_be32(f) != MAGIC || !qemu_get_counted_string(f, name) ||
        strcmp(name, vmsd->name) || qemu_get_be32(f) != vmsd->version_id) {
        error_report("%s: the state to load is not that of %s, version %d",
                     s->path, vmsd->name, vmsd->version_id);
        return false;
    }
    return true;
}

static bool load_device(VhostUserServer *s, QEMUFile *f)
{
    VirtIODevice *vdev = vus_vdev(s);
    uint64_t unknown;
    int ret = rdma_vmstate_load(f, description(s), s);

    if (ret < 0 || qemu_get_be32(f) != END_MAGIC || qemu_file_get_error(f)) {
        error_report("%s: the state to load is damaged, cut short, or that of "
                     "a device with other properties", s->path);
        return false;
    }
    unknown = vdev->guest_features & ~vus_guest_features(vus_features(s));
    if (unknown || (vdev->status & VIRTIO_CONFIG_S_DRIVER_OK)) {
        error_report("%s: the state to load has status 0x%x and features 0x%"
                     PRIx64 ": expected a device that is stopped, without the "
                     "features 0x%" PRIx64, s->path, vdev->status,
                     vdev->guest_features, unknown);
        return false;
    }
    return true;
}

/*
 * Open the file again, for a position of its own: the front end has the other
 * one. Seal the file, so that its size stays what it is.
 */
static QEMUFile *open_state(VhostUserServer *s)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", s->state_fd);
    QIOChannelFile *ioc = qio_channel_file_new_path(path, O_RDONLY, 0, NULL);
    struct stat st;
    QEMUFile *f;

    if (!ioc) {
        error_report("%s: cannot open the state to load", s->path);
        return NULL;
    }
    if (fcntl(s->state_fd, F_ADD_SEALS, F_SEAL_GROW) < 0 ||
        fstat(ioc->fd, &st) < 0 || st.st_size > MAX_STATE) {
        error_report("%s: the state to load is sealed by the front end, or has "
                     "more than %" PRIu64 " bytes", s->path, MAX_STATE);
        object_unref(OBJECT(ioc));
        return NULL;
    }
    f = qemu_file_new_input(QIO_CHANNEL(ioc));
    object_unref(OBJECT(ioc));
    return f;
}

bool vus_state_finish(VhostUserServer *s)
{
    QEMUFile *f;
    bool ok;

    if (!s->loads_state) {
        vus_state_close(s);
        return true;
    }
    vus_reset(s);
    f = open_state(s);
    ok = f && load_header(s, f) && load_device(s, f);
    if (f) {
        qemu_fclose(f);
    }
    if (!ok) {
        vus_reset(s);
    }
    vus_state_close(s);
    return ok;
}
