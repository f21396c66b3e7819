/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replaces umad.c if libibumad is missing: no port can be opened, so the other
 * functions are never called.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "int.h"

VerbsUmad *verbs_umad_open(const char *ibdev, uint8_t port_num, Error **errp)
{
    error_setg(errp, "this QEMU was built without libibumad (package "
               "libibumad-dev)");
    return NULL;
}

void verbs_umad_close(VerbsUmad *u)
{
    g_assert_not_reached();
}

int verbs_umad_fd(const VerbsUmad *u)
{
    g_assert_not_reached();
}

int verbs_umad_send(VerbsUmad *u, const VerbsMad *mad)
{
    g_assert_not_reached();
}

int verbs_umad_recv(VerbsUmad *u, VerbsMad *mad)
{
    g_assert_not_reached();
}
