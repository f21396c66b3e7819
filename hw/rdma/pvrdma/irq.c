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

/*
 * Reading a cause acknowledges it. Drivers compare the value with the cause of
 * a reply, so this returns one cause at a time.
 */
uint32_t pvrdma_read_icr(Pvrdma *s)
{
    uint32_t cause = s->icr & -s->icr;

    s->icr &= ~cause;
    pci_set_irq(PCI_DEVICE(s), s->icr != 0);
    return cause;
}

void pvrdma_reset_icr(Pvrdma *s)
{
    s->icr = 0;
    pci_set_irq(PCI_DEVICE(s), 0);
}
