int answer(void) { return 42; }
void* PyInit_recorded(void) { return 0; } /* enough to be built; nobody imports it */
