/* Limits that the shell sets on a process (ulimit): what would end it without a word is told in one line. */
#ifndef LIMITS_H
#define LIMITS_H

/* Called before anything else. 0, or the exit status where dtrun cannot run under the limits it has. From now on a file
 * that grows past the limit of its size fails as on a full disk. */
int limits_check(void);

#endif
