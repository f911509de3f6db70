/* Limits of the shell (ulimit) that would end the process without a message: one line tells of them. */
#ifndef LIMITS_H
#define LIMITS_H

/* To be called first. Returns 0, or an exit status if dtrun cannot run under these limits. From now on writing past the
 * limit of a file's size fails as on a full disk. */
int limits_check(void);

#endif
