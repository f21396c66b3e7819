/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts: MSI-X, and INTx without.
 */
#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "int.h"

bool pvrdma_is_masked(const Pvrdma *s, unsigned vector)
{
    return s->imr & (1u << vector);
}

void pvrdma_interrupt(Pvrdma *s, unsigned vector)
{
    PCIDevice *pci = PCI_DEVICE(s);

    if (pvrdma_is_masked(s, vector)) {
        return;
    }
    if (msix_enabled(pci)) {
        msix_notify(pci, vector);
        return;
    }
    s->icr |= 1u << vector;
    pci_set_irq(pci, 1);
}

/* The cause is acknowledged by reading it. */
uint32_t pvrdma_read_icr(Pvrdma *s)
{
    uint32_t icr = s->icr;

    s->icr = 0;
    pci_set_irq(PCI_DEVICE(s), 0);
    return icr;
}
