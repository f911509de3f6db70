/* Limits of the process (ulimit) that would end it without a message: dtrun prints a line instead. */
#ifndef LIMITS_H
#define LIMITS_H

/* Checks the limits; call it first. Returns 0, or an exit status if dtrun cannot run under these limits. From then on,
 * writing beyond the limit of a file's size fails as on a full disk. */
int limits_check(void);

#endif
