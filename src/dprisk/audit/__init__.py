"""The third question: does the code keep its promise?"""
