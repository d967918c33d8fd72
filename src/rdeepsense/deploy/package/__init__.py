"""A fitted model as one folder that Arduino, PlatformIO, Zephyr and ESP-IDF all take."""
