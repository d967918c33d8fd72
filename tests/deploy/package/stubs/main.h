/* Behind a sketch: what Arduino's core does with it, TIMES times, each 20 ms later. */
int main()
{
    setup();
    for (int k = 0; k < TIMES; ++k) {
        loop();
        stub_clock += 20000u;
    }
    return 0;
}
