"""The other side of the pipe: what runs in the zygote, in what it forks, and around untrusted code.

This room is single-threaded and knows nothing of asyncio: it reads orders from a socket, forks, confines, runs. What
comes back out of it is untrusted from the moment that foreign code has run.
"""
