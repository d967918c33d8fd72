/* The self-test prints what failed; in a page only its result is read. */
static int printf(const char *text, ...)
{
    (void)text;
    return 0;
}
