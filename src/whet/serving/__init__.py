"""What others connect to: worlds over their wires, for trainers and agents that are not ours, and policies, for users.

This room stands above training and knows nothing of the command line; no other room imports it.
"""
